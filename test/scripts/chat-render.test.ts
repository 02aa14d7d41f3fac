/** What is shown: text, turns, the context picture. Colours are left out; they are the screen's. */
import { stripVTControlCharacters } from "node:util";
import { describe, expect, it } from "vitest";
import { contextPicture, contractChange, header, recap, sessionRow, shareCells } from "../../scripts/chat/render.ts";
import type { Session } from "../../scripts/chat/resources.ts";
import { Screen, type Span, wantsColor } from "../../scripts/chat/screen.ts";
import { ago, cells, cutTo, oneLine, pad, withoutControls } from "../../scripts/chat/text.ts";
import type { TurnEvent } from "../../scripts/chat/turn-events.ts";
import { endLine, NEW_TURN, showEvent } from "../../scripts/chat/turn-view.ts";

const plain = (lines: readonly Span[][]) => lines.map((line) => line.map(([text]) => text).join(""));

const session: Session = {
  id: "s-1",
  agent: "concierge",
  identity: { id: "agent-1", name: "Wren", source: "generated" },
  epoch: 2,
  fingerprint: `sha256:${"0123456789abcdef".repeat(4)}`,
  promptSha256: null,
  model: "demo/echo",
  state: "idle",
  messageCount: 4,
  updatedAt: "2026-01-01T10:00:00Z",
  activeTurn: null,
  drift: null,
};

describe("withoutControls", () => {
  it("drops every C0, DEL and C1 character but newline and tab, and nothing else", () => {
    for (let code = 0; code <= 0x2ff; code += 1) {
      const char = String.fromCodePoint(code);
      const control = (code < 0x20 && code !== 9 && code !== 10) || (code >= 0x7f && code <= 0x9f);
      expect(withoutControls(char), `U+${code.toString(16)}`).toBe(control ? "" : char);
    }
    expect(withoutControls("é 🐦‍⬛ 日本 \u200d\u2028")).toBe("é 🐦‍⬛ 日本 \u200d\u2028");
  });

  it("leaves nothing of an escape sequence that a terminal would obey", () => {
    expect(withoutControls("\x1b]0;title\x07\x1b[2J\x9b31m")).toBe("]0;title[2J31m");
  });
});

describe("Screen", () => {
  const make = (interactive: boolean, color: boolean) => {
    const printed = { out: "", err: "" };
    const sink = (name: "out" | "err") => ({
      write: (text: string) => {
        printed[name] += text;
      },
    });
    return { printed, screen: new Screen(sink("out"), sink("err"), { interactive, color }) };
  };

  it("strips what it is given, then colours", () => {
    const { printed, screen } = make(true, true);
    screen.write("a\x1b[2Jb", "bold");
    screen.line(["c\x9bd", "red"]);
    screen.note("e\x07f");
    expect(stripVTControlCharacters(printed.out)).toBe("a[2Jb\ncd\nef\n");
    expect(printed.out).toContain("\x1b[1m");
  });

  it("puts only answers on standard output of a pipe, without a control character", () => {
    const { printed, screen } = make(false, false);
    screen.write("answer", "bold");
    screen.note("note");
    screen.error("er\x1bror");
    screen.control("\x1b[2J");
    screen.freshLine();
    expect(printed).toEqual({ out: "answer\n", err: "note\nerror\n" });
  });

  it("honours NO_COLOR, dumb terminals and pipes", () => {
    expect(wantsColor(true, {})).toBe(true);
    expect(wantsColor(true, { NO_COLOR: "" })).toBe(true);
    expect(wantsColor(true, { NO_COLOR: "1" })).toBe(false);
    expect(wantsColor(true, { TERM: "dumb" })).toBe(false);
    expect(wantsColor(false, { FORCE_COLOR: "1" })).toBe(false);
  });
});

describe("text", () => {
  it("counts cells of wide and combining characters", () => {
    expect(["abc", "日本", "🐦", "e\u0301", ""].map(cells)).toEqual([3, 4, 2, 1, 0]);
  });

  it("cuts and pads by cells", () => {
    expect(cutTo("abcdef", 6)).toBe("abcdef");
    expect(cutTo("abcdefg", 6)).toBe("abcde…");
    expect(cutTo("日本語", 4)).toBe("日…");
    expect(cutTo("abc", 0)).toBe("");
    expect(pad("日本", 6)).toBe("日本  ");
  });

  it("says how long ago", () => {
    const now = Date.parse("2026-01-10T00:00:00Z");
    expect(ago("2026-01-10T00:00:10Z", now)).toBe("just now");
    expect(ago("2026-01-09T23:55:00Z", now)).toBe("5 min ago");
    expect(ago("2026-01-09T20:00:00Z", now)).toBe("4 h ago");
    expect(ago("2026-01-08T23:00:00Z", now)).toBe("1 day ago");
    expect(ago("so\nmetime", now)).toBe("so metime");
  });
});

describe("resources", () => {
  it("shows whom one talks to", () => {
    expect(plain(header(session))).toEqual([
      "Wren (agent-1)  agent concierge  model demo/echo",
      "session s-1  epoch 2  sha256:0123456789ab",
    ]);
    const drift = { candidate: "sha256:1", since: "2026-01-01T00:00:00Z" };
    expect(plain(header({ ...session, drift, state: "unknown" })).slice(2)).toEqual([
      "The agent's instructions have changed since; /refresh adopts them.",
      "The outcome of the last turn is not known.",
    ]);
  });

  it("tells old from new", () => {
    const other = { ...session, epoch: 3, fingerprint: `sha256:${"f".repeat(64)}` };
    expect(contractChange(session, session)).toBe("unchanged: sha256:0123456789ab, epoch 2");
    expect(contractChange(session, other)).toBe("sha256:0123456789ab, epoch 2 → sha256:ffffffffffff, epoch 3");
  });

  it("keeps a recap short, on one line a message, and marks cut-off ones", () => {
    const message = { seq: 1, id: "m", ts: "", status: "complete" };
    const lines = plain(
      recap(
        [
          { ...message, role: "user", text: "a\n\nb\x1b[2J" },
          { ...message, role: "assistant", text: "x".repeat(500), status: "partial" },
        ],
        60,
        "Wren",
      ),
    );
    expect(lines[0]).toBe("you  a b[2J");
    expect(lines[1]).toMatch(/^Wren \[partial\] {2}x+…$/);
    expect(lines[1]!.length).toBeLessThanOrEqual(120);
  });

  it("keeps a picker row within its width", () => {
    const row = sessionRow({ ...session, identity: { ...session.identity, name: "日\n本".repeat(30) } }, 0, 60);
    expect(cells(row)).toBeLessThanOrEqual(60);
    expect(row).not.toContain("\n");
  });
});

describe("the context picture", () => {
  const report = {
    budget: 100_000,
    tokens: { system: 1200, tools: 300, history: 10_500, free: 88_000 },
    historyFrom: 5,
    estimator: "utf8/4",
  };

  it("draws the budget", () => {
    expect(plain(contextPicture(report, 80))).toEqual([
      "12,000 of 100,000 tokens used (12%)",
      `█▓▒▒▒▒▒${"·".repeat(41)}`,
      "█ system    1,200",
      "▓ tools       300",
      "▒ history  10,500",
      "· free     88,000",
      "history sent from entry 5, estimated by utf8/4",
    ]);
  });

  it("says when the budget is exceeded, and survives zeros and narrow terminals", () => {
    const tokens = { system: 1200, tools: 0, history: 200_000, free: -5 };
    const lines = plain(contextPicture({ ...report, tokens, historyFrom: null }, 20));
    expect(lines[0]).toBe("201,200 of 100,000 tokens used (201%)");
    expect(lines[1]).toBe(`█${"▒".repeat(15)}`);
    expect(lines).toContain("The budget is exceeded.");
    const empty = { ...report, budget: 0, tokens: { system: 0, tools: 0, history: 0, free: 0 } };
    expect(plain(contextPicture(empty, 80))[0]).toBe("0 of 0 tokens used");
  });

  it("shares all cells, at least one for what is there", () => {
    expect(shareCells([1, 0, 1_000_000], 10)).toEqual([1, 0, 9]);
    expect(shareCells([1, 1, 1], 10)).toEqual([4, 3, 3]);
    expect(shareCells([0, 0], 10)).toEqual([0, 0]);
  });
});

describe("a turn as it is shown", () => {
  const play = (...events: TurnEvent[]) => {
    let view = NEW_TURN;
    const shown: string[] = [];
    for (const event of events) {
      const [next, pieces] = showEvent(view, event);
      view = next;
      shown.push(...pieces.map(({ kind, text }) => (kind === "marker" ? `[${text}]` : text)));
    }
    return { text: view.text, shown: shown.join("|") };
  };
  const delta = (text: string): TurnEvent => ({ type: "delta", text });
  const turn = (state: string): TurnEvent => ({ type: "turn", turn: "t", state, attempt: 1, reason: null });

  it.each<[string, TurnEvent[], string, string]>([
    ["deltas and their message", [delta("a"), delta("b"), { type: "message", text: "ab" }], "ab", "a|b"],
    ["a message without deltas", [{ type: "message", text: "ab" }], "ab", "ab"],
    ["a message that says more", [delta("a"), { type: "message", text: "ab" }], "ab", "a|b"],
    [
      "a message that says other",
      [delta("x"), { type: "message", text: "ab" }],
      "ab",
      "x|[the text above is replaced]|ab",
    ],
    ["a resync that goes on", [delta("a"), { type: "resync", text: "abc" }, delta("d")], "abcd", "a|bc|d"],
    ["a resync that differs", [delta("x"), { type: "resync", text: "ab" }], "ab", "x|[the text above is replaced]|ab"],
    ["a reset", [delta("x"), { type: "reset" }, delta("a")], "a", "x|[a new attempt: the text above is dropped]|a"],
    ["a reset before any text", [{ type: "reset" }, delta("a")], "a", "a"],
    ["a tool", [{ type: "tool", name: "w\x1b[2J", state: "done" }], "", "[tool w[2J: done]"],
    ["a queue", [turn("queued"), turn("queued"), turn("dispatched")], "", "[waiting for its place in the queue]"],
    ["a second try to reconnect", [{ type: "reconnecting", attempt: 2 }], "", ""],
  ])("%s", (_, events, text, shown) => expect(play(...events)).toEqual({ text, shown }));

  it("keeps both messages of a turn with tools", () => {
    const events: TurnEvent[] = [
      delta("Let me look. "),
      { type: "message", text: "Let me look. " },
      { type: "tool", name: "w", state: "done" },
      delta("It rains."),
      { type: "message", text: "It rains." },
    ];
    expect(play(...events)).toEqual({
      text: "Let me look. It rains.",
      shown: "Let me look. |[tool w: done]|It rains.",
    });
  });

  it("says how a turn ended, if not well", () => {
    expect(endLine({ state: "completed", reason: null })).toBeNull();
    expect(endLine({ state: "failed", reason: "incomplete" })).toBe(
      "The turn failed. The answer was cut off (incomplete).",
    );
    expect(endLine({ state: "failed", reason: "provider_rejected", providerStatus: 401 })).toMatch(
      / It answered 401\.$/,
    );
    expect(endLine({ state: "failed", reason: "incomplete", providerStatus: 200 })).not.toContain("200");
    expect(endLine({ state: "cancelled", reason: null })).toBe("The turn was cancelled.");
    expect(endLine({ state: "failed", reason: "toString" })).toBe("The turn failed. Reason: toString.");
    const unknown = endLine({ state: "unknown", reason: "restarted" });
    expect(unknown).toContain("not known");
    expect(unknown).toContain("restarted");
    expect(unknown).toContain("/retry");
  });
});

it("oneLine folds white space and strips", () => expect(oneLine(" a\n\tb\x1b ")).toBe("a b"));
