/** The prompts that ship: they build cleanly, and say what the design needs them to say. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readPrompts } from "../../scripts/lib/read-prompts.ts";
import { compileContract } from "../../src/prompt/contract.ts";
import { PLATFORM_TEXTS, type PromptBundle } from "../../src/prompt/sources.ts";
import { uses } from "../../src/prompt/template.ts";
import { ROOT, runBuild, temporaryFolder } from "./folder.ts";
import { NO_INPUTS } from "./sample.ts";

const bundle = shipped();
const names = Object.keys(bundle.agents);
const contractOf = (name: string, id = "agent-1") =>
  compileContract({
    bundle,
    agent: bundle.agents[name]!,
    identity: { id, name: "Wren" },
    level: "main",
    inputs: NO_INPUTS,
  });

it("build without problems or warnings, twice to the same bytes", () => {
  const texts = ["a.ts", "b.ts"].map((file) => {
    const out = join(temporaryFolder(), file);
    const { status, stderr } = runBuild("--out", out);
    expect([status, stderr]).toEqual([0, ""]);
    return readFileSync(out, "utf8").replace(/^import type .*$/m, "");
  });
  expect(texts[0]).toBe(texts[1]);
});

describe("agents", () => {
  it("are at least the two that examples and docs name", () => {
    expect(names).toEqual(expect.arrayContaining(["concierge", "standup"]));
  });

  it.each(names)("%s: uses the service's model and keeps its contract frozen", (name) => {
    const { config } = bundle.agents[name]!;
    expect([config.model, config.instructions]).toEqual([undefined, "frozen"]);
  });

  it.each(names)("%s: shares one contract between sessions, and knows its name", (name) => {
    expect(contractOf(name, "one")).toEqual(contractOf(name, "two"));
    expect(contractOf(name).contract.base).toContain("You are Wren");
  });

  it.each(names)("%s: no placeholder is left in what is sent", (name) => {
    const { base, developer } = contractOf(name).contract;
    expect(base + developer).not.toMatch(/\{\{|\}\}|<!--/);
  });

  it("concierge states no fact of the shop before its owner has filled it in", () => {
    const text = bundle.agents.concierge!.files["AGENTS.md"]!;
    const facts = text
      .slice(text.indexOf("## Shop information"))
      .split("\n")
      .filter((line) => line.startsWith("- "));
    expect(facts.length).toBeGreaterThan(5);
    expect(facts.filter((line) => !line.endsWith(": EDIT"))).toEqual([]);
  });
});

describe("texts", () => {
  it("the interrupted notice: unknown, not assumed done, not redone", () => {
    const { interrupted } = bundle.notices;
    expect(interrupted).toMatch(/outcome of the message above is unknown/);
    expect(interrupted).toMatch(/Do not assume it was done/);
    expect(interrupted).toMatch(/Do not redo it unprompted/);
  });

  it("an idle turn says that there is nothing to do and to stop", () => {
    expect(bundle.events.idle).toMatch(/No new messages/);
    expect(bundle.events.idle).toMatch(/stop/);
  });

  it("every event and notice bears the runtime's mark, which the platform text explains", () => {
    for (const text of [...Object.values(bundle.events), ...Object.values(bundle.notices)]) {
      expect(text).toMatch(/^\[runtime\] /);
    }
    expect(bundle.platform.persistence).toContain("`[runtime]`");
  });

  it("the platform's own texts hold nothing but the name: one prefix for every session", () => {
    for (const name of PLATFORM_TEXTS) expect(uses(bundle.platform[name], "identity.id")).toBe(false);
    expect(bundle.platform.project).toContain("{{project.name}}");
  });

  it("the page about the folder names every folder and file kind", () => {
    const page = readFileSync(join(ROOT, "prompts/README.md"), "utf8");
    for (const word of ["platform/", "agents/", "skills/", "models/", "events/", "notices/", "<!-- reference -->"]) {
      expect(page).toContain(word);
    }
  });
});

function shipped(): PromptBundle {
  const read = readPrompts(join(ROOT, "prompts"));
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  expect(read.warnings).toEqual([]);
  return read.bundle;
}
