/** Failure class: the page of a drift runs, loads or shows something else than its numbers and the prompts' exact texts. */
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { countLines } from "../../scripts/lib/drift/count-lines.ts";
import { escapeHtml, html } from "../../scripts/lib/drift/html.ts";
import { share } from "../../scripts/lib/drift/numbers.ts";
import { driftPage } from "../../scripts/lib/drift/page.ts";
import { driftJson, driftTable } from "../../scripts/lib/drift/table.ts";
import { parseOptions } from "../../scripts/lib/replay/options.ts";
import { fileOutput } from "../../scripts/lib/replay/output.ts";
import { run } from "../../scripts/lib/replay/run.ts";
import { utf8 } from "../../src/prompt/text.ts";
import { readDrift } from "../../src/replay/drift.ts";
import { bytesSource } from "../../src/replay/source.ts";
import { LogWriter } from "../replay/logs.ts";

const HOSTILE = "\n</pre></script><script>alert(1)</script><img src=x onerror=alert(2)>\r\n&amp; \"quoted\" 'too' <!--";

function drift(id = "s") {
  const log = new LogWriter(id);
  log.prompt("You are Wren.\nSecond line.");
  log.turn("turn_1", "one", "first", { from: 3, system: "You are Wren.\nSecond line." });
  log.prompt(HOSTILE, "rebuilt");
  log.turn("turn_2", "two", "second", { from: 3, system: HOSTILE });
  const read = readDrift(bytesSource(utf8(log.text())), countLines);
  if (!read.ok) throw new Error(read.fault.message);
  return { value: read.value, log: log.text() };
}

const page = driftPage(drift(`${HOSTILE}"`).value);
const script = /<script>(.*)<\/script>/s.exec(page)![1]!;

describe("the page", () => {
  it("holds a prompt as the text it is, and an id too", () => {
    const pres = [...page.matchAll(/<pre data-prompt="\d+">\n(.*?)<\/pre>/gs)].map(([, text]) => unescaped(text!));
    expect(pres).toEqual(["You are Wren.\nSecond line.", HOSTILE]);
    expect(page.match(/<script/g)).toHaveLength(1);
    expect(page.match(/<\/script/g)).toHaveLength(1);
    expect(page).not.toMatch(/<img|<!--/);
  });

  it("lets nothing run but its own script, and loads nothing", () => {
    const policy = unescaped(/http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(page)![1]!);
    const style = /<style>(.*?)<\/style>/s.exec(page)![1]!;
    expect(policy).toBe(
      `default-src 'none'; script-src '${hash(script)}'; style-src '${hash(style)}'; base-uri 'none'; form-action 'none'`,
    );
    expect(page.replace(script, "")).not.toMatch(/\b(src|href|style|on\w+)="|url\(|@import/);
  });

  it("has the numbers without its script", () => {
    const text = page.replace(script, "");
    expect(text).toContain("<h2>Prompt changes</h2><strong>1</strong>");
    expect(text).toContain("<td>+3 −2</td>");
    expect(text).toContain("<noscript>");
  });
});

it("is written whole, for its owner alone", async () => {
  const folder = mkdtempSync(join(tmpdir(), "selfsame-drift-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const [log, path] = [join(folder, "log.jsonl"), join(folder, "new/page.html")];
  const written = fileOutput(log);
  await written.write(drift().log);
  written.finish();
  const command = parseOptions([log, "--drift", "--html", path], {});
  const out = fileOutput((command as { out: string }).out);
  expect(await run(command, { out, warn: () => {} })).toBe(true);
  out.finish();
  expect(readFileSync(path, "utf8")).toBe(driftPage(drift().value));
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

describe("the table and the JSON", () => {
  it("show the same numbers, and control characters of a log as what they are not", () => {
    const { value } = drift("a\u001b[2Jb");
    const table = [...driftTable(value)];
    expect(table[0]).toBe("session a\ufffd[2Jb, log version 3");
    expect(table).toContain("changes: 1");
    expect(table).toContain("coherence: 0.50");
    const json = JSON.parse(driftJson(value));
    expect(json).toMatchObject({ version: 3, changes: 1, coherence: 0.5, cache: { efficiency: null } });
    expect(json.prompts[1]).toMatchObject({ similarity: { previous: 0, first: 0 }, lines: { added: 3, removed: 2 } });
    expect(JSON.stringify(json)).not.toContain("Wren");
  });

  it("never round a share up to 1", () => {
    expect([share(0.9999), share(1), share(null)]).toEqual(["0.99", "1.00", "–"]);
  });
});

describe("the options", () => {
  it.each([
    [["x", "--html", "f"], "--html goes with --drift"],
    [["x", "--drift", "--verify"], "--drift goes apart from --verify and --request"],
    [["x", "--drift", "--html", "f", "--json"], "--html goes apart from --json and --out"],
  ])("%j: %s", (args, message) => expect(() => parseOptions(args, {})).toThrow(message));
});

it("escapes whatever is put into a template, lists of it too", () => {
  expect(html`<p title="${'"&'}">${["<b>", html`<i>`]}</p>`.text).toBe('<p title="&#34;&#38;">&#60;b&#62;<i></p>');
  expect(unescaped(escapeHtml(HOSTILE))).toBe(HOSTILE);
});

function hash(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}

function unescaped(text: string): string {
  return text.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)));
}
