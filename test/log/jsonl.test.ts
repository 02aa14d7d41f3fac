import { describe, expect, it } from "vitest";
import { endLine, entryLine, parseExport, snapshotLine } from "../../src/log/jsonl.ts";

describe("log lines", () => {
  it("put the stored body in unchanged, behind seq, ts, type and turn", () => {
    const row = {
      seq: 7,
      ts: "2026-11-30T00:00:00.000Z",
      type: "notice",
      turn: "turn_1",
      body: '{"code":"x","text":"\\u00e9 é"}',
    };
    expect(entryLine(row)).toBe(
      '{"seq":7,"ts":"2026-11-30T00:00:00.000Z","type":"notice","turn":"turn_1","code":"x","text":"\\u00e9 é"}\n',
    );
    expect(entryLine({ ...row, turn: null, type: "clear", body: "{}" })).toBe(
      '{"seq":7,"ts":"2026-11-30T00:00:00.000Z","type":"clear"}\n',
    );
  });

  it("keep a text with line ends, quotes and separators on one line", () => {
    const text = 'a\nb\r\n"\u2028\uFEFF{{x}}$&';
    const line = snapshotLine({ kind: "prompt", sha256: "00", text });
    expect(line.split("\n")).toHaveLength(2);
    expect(parseExport(line)).toEqual([{ type: "snapshot", kind: "prompt", sha256: "00", text }]);
  });

  it("say which line cannot be read", () => {
    expect(() => parseExport(`${endLine({ entries: 0, sha256: "00" })}{not json}\n`)).toThrow("line 2 is not JSON");
  });
});
