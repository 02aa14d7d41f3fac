/** Messages: how their answers are shown, and cancelled; and that a failure leaves the client usable. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { cancelRunning } from "../../scripts/chat/send-message.ts";
import { Shell } from "../../scripts/chat/shell.ts";
import { ScriptedChat, until } from "./support/scripted-chat.ts";

let t: ScriptedChat;
beforeEach(async () => {
  t = await new ScriptedChat().start();
});
afterEach(() => t.stop());

describe("a message", () => {
  it("streams its answer", async () => {
    expect(await t.run("hello")).toBe("Wren  You said: hello\n");
    expect(t.chat.failed).toBe(false);
  });

  it("is sent with one slash when typed with two", async () => {
    expect(await t.run("//etc")).toBe("Wren  You said: /etc\n");
  });

  it("keeps control characters of the model from the terminal", async () => {
    expect(await t.run("controls")).toBe("Wren  a[2Jb31mc\td\n");
  });

  it("marks a dropped attempt, a tool, a replaced text", async () => {
    expect(await t.run("reset")).toBe("Wren  wrong\n[a new attempt: the text above is dropped]\nright\n");
    expect(await t.run("resync")).toBe("Wren  abc\n");
    expect(await t.run("tool")).toBe("Wren  Let me look. \n[tool weather: running]\n[tool weather: done]\nIt rains.\n");
  });

  it.each([
    ["fail", "The turn failed. The model provider is not available (provider_unavailable)."],
    ["unknown", "The outcome of this turn is not known"],
    ["busy", "Too many queued turns: 100 turns are waiting. (queue_full, HTTP 429)"],
  ])("that ends as %s says why, and the next one works", async (line, reason) => {
    expect(await t.run(line)).toContain(reason);
    expect(t.chat.failed).toBe(true);
    expect(await t.run("still here?")).toContain("You said: still here?");
  });

  it("is cancelled on request", async () => {
    const sent = t.run("open");
    await until(() => t.printed.includes("thinking"));
    await cancelRunning(t.chat);
    expect(await sent).toContain("thinking\nThe turn was cancelled.\n");
    expect(t.stub.requests("POST", /turns\/turn-1\/cancel$/)).toHaveLength(1);
  });

  it("leaves no timer behind when its end came before the answer to the cancel", async () => {
    const sent = t.run("open");
    await until(() => t.printed.includes("thinking"));
    const cancel = t.chat.api.cancelTurn.bind(t.chat.api);
    t.chat.api.cancelTurn = async (...args) => {
      await cancel(...args);
      await sent;
    };
    const timer = vi.spyOn(globalThis, "setTimeout");
    await cancelRunning(t.chat);
    expect(timer.mock.calls.filter(([, ms]) => ms === 10_000)).toEqual([]);
    timer.mockRestore();
  });

  it("is cancelled even if Ctrl-C came before its id was known", async () => {
    const sent = t.run("open");
    await cancelRunning(t.chat);
    expect(t.stub.requests("POST", /cancel$/)).toHaveLength(0);
    expect(await sent).toContain("The turn was cancelled.");
  });

  it("is not sent again when Ctrl-C comes while the service is away", async () => {
    await t.stub.stop();
    const sent = t.run("hello");
    await until(() => t.printed.includes("reconnecting"));
    await cancelRunning(t.chat);
    expect(await sent).toContain("The message is not sent again.");
  });

  it("is no longer shown when the service cannot cancel, and that is said", async () => {
    t.stub.canCancel = false;
    const sent = t.run("open");
    await until(() => t.printed.includes("thinking"));
    await cancelRunning(t.chat);
    expect(await sent).toContain(
      "Not found: There is no such thing. (not_found, HTTP 404)\nSo the turn is not cancelled.",
    );
    expect(t.chat.running).toBeNull();
    expect(await t.run("next")).toContain("You said: next");
  });
});

describe("Ctrl-C", () => {
  it("cancels the turn, and leaves the second time", async () => {
    const codes: number[] = [];
    const shell = new Shell(t.chat, (code) => codes.push(code));
    t.stub.canCancel = false;
    t.input.lines = ["open"];
    const done = shell.run();
    await until(() => t.printed.includes("thinking"));
    shell.interrupt(1000);
    shell.interrupt(2500);
    expect(codes).toEqual([130]);
    expect(await done).toBe(0);
  });
});

describe("the list of used sessions", () => {
  it("gets one line a session, at the first message, without a word of it", async () => {
    await t.run("my secret");
    await t.run("another secret");
    const lines = (await readFile(t.chat.statePath, "utf8")).trimEnd().split("\n");
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(t.chat.session.id);
    expect(lines[0]).not.toContain("secret");
  });

  it("is given up with one note when it cannot be written", async () => {
    await writeFile(join(t.home, "selfsame"), "in the way");
    expect(await t.run("one")).toContain("The list for /resume is not kept");
    expect(await t.run("two")).toBe("Wren  You said: two\n");
    expect(t.chat.failed).toBe(false);
  });
});
