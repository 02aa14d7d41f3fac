import { describe, expect, it } from "vitest";
import { EVENTS, EVENTS_WITH_TEXT, NOTICES } from "../../src/prompt/sources.ts";
import { type TextBlock, type TurnContextRequest, turnContext } from "../../src/prompt/turn-context.ts";
import { FILES, sampleAgent, sampleBundle } from "./sample.ts";

function context(changes: Partial<TurnContextRequest> = {}) {
  return turnContext({
    bundle: sampleBundle(),
    agent: sampleAgent(),
    identity: { id: "agent-1", name: "Wren" },
    level: "main",
    inputs: { project: null },
    event: "message",
    notices: [],
    input: ["hello"],
    ...changes,
  });
}

const short = (blocks: readonly TextBlock[]) => blocks.map(({ type, text }) => `${type}: ${text}`);
const REFERENCES = "reference: REFERENCE\n\nARK REFERENCE\n\nZOO REFERENCE";

describe("every event", () => {
  it.each(EVENTS_WITH_TEXT)("%s: fresh is references, opening, event, input; resume is event and input", (event) => {
    const { fresh, resume } = context({ event });
    expect(short(resume)).toEqual([`event: EVENT ${event}`, "text: hello"]);
    expect(short(fresh)).toEqual([REFERENCES, "reference: FIRST", `event: EVENT ${event}`, "text: hello"]);
  });

  it("message: the message speaks for itself", () => {
    const { fresh, resume } = context();
    expect(short(resume)).toEqual(["text: hello"]);
    expect(short(fresh)).toEqual([REFERENCES, "reference: FIRST", "text: hello"]);
  });

  it.each(EVENTS_WITH_TEXT)("%s without input still says something, fresh or not", (event) => {
    const { fresh, resume } = context({
      event,
      input: [],
      agent: sampleAgent({ skills: [] }, { "IDENTITY.md": "ME" }),
    });
    expect(short(resume)).toEqual([`event: EVENT ${event}`]);
    expect(short(fresh)).toEqual([`event: EVENT ${event}`]);
  });

  it.each(EVENTS)("%s: a resume carries no reference", (event) => {
    expect(context({ event }).resume.filter(({ type }) => type === "reference")).toEqual([]);
  });
});

describe("notices", () => {
  it.each(NOTICES)("%s stands between event and input", (notice) => {
    const { resume } = context({ event: "resume", notices: [notice] });
    expect(resume.map(({ type }) => type)).toEqual(["event", "notice", "text"]);
    expect(resume[1]?.text.startsWith(`NOTICE ${notice}`)).toBe(true);
  });

  it("keep the order they are given in, and have their names filled in", () => {
    const { resume, fresh } = context({ notices: ["memory_resume", "identity"] });
    const expected = ["notice: NOTICE memory_resume", "notice: NOTICE identity Wren", "text: hello"];
    expect(short(resume)).toEqual(expected);
    expect(short(fresh).slice(-3)).toEqual(expected);
  });
});

describe("input", () => {
  it("keeps its texts apart, in order, to the byte", () => {
    const input = ["\uFEFFone\r\n", "", "{{identity.name}} $&", "  "];
    expect(context({ input }).resume).toEqual(input.map((text) => ({ type: "text", text })));
  });
});

describe("opening material", () => {
  it("is empty for an agent with none", () => {
    const agent = sampleAgent({ skills: [] }, { "IDENTITY.md": "ME" });
    expect(short(context({ agent }).fresh)).toEqual(["text: hello"]);
  });

  it("has its placeholders filled in", () => {
    const files = { ...FILES, "FIRST.md": "{{identity.name}} of {{project.name}}" };
    const { fresh } = context({ agent: sampleAgent({}, files), inputs: { project: { name: "Atlas", rules: "R" } } });
    expect(fresh[1]).toEqual({ type: "reference", text: "Wren of Atlas" });
  });

  it("for a subagent is TASK.md at every task, never FIRST.md", () => {
    const { fresh, resume } = context({ level: "sub" });
    expect(short(fresh)).toEqual([REFERENCES, "reference: TASK", "text: hello"]);
    expect(short(resume)).toEqual(["reference: TASK", "text: hello"]);
    expect(short(context({ level: "sub", event: "idle", input: [] }).resume)).toEqual(["event: EVENT idle"]);
  });
});

describe("an agent that no longer exists", () => {
  it("brings no text of its own, while the rest goes on with the identity the session has", () => {
    const { fresh, resume } = context({ agent: null, event: "wake", notices: ["identity"] });
    expect(short(resume)).toEqual(["event: EVENT wake", "notice: NOTICE identity Wren", "text: hello"]);
    expect(fresh).toEqual(resume);
    expect(short(context({ agent: null, level: "sub" }).fresh)).toEqual(["text: hello"]);
  });
});
