/** Commands and messages against a service: what is sent, what is shown, and that an error changes nothing. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Api } from "../../scripts/chat/api.ts";
import { type Conversation, newConversation } from "../../scripts/chat/conversation.ts";
import type { LineInput } from "../../scripts/chat/line-input.ts";
import { parallel, readMessages } from "../../scripts/chat/open-session.ts";
import { Screen } from "../../scripts/chat/screen.ts";
import { cancelRunning } from "../../scripts/chat/send-message.ts";
import { handleLine, Shell } from "../../scripts/chat/shell.ts";
import { recordUse } from "../../scripts/chat/state-file.ts";
import { StubService } from "./support/stub-service.ts";

/** Lines from a list; keys from a script; remembers the history it was given. */
class ScriptedInput implements LineInput {
  lines: string[] = [];
  history: readonly string[] = [];
  keys: string[] = [];
  closed = false;

  next(): Promise<string | null> {
    return Promise.resolve(this.closed ? null : (this.lines.shift() ?? null));
  }
  setHistory(lines: readonly string[]): void {
    this.history = lines;
  }
  typed(): boolean {
    return false;
  }
  discardLine(): void {}
  redraw(): void {}
  takeKeys(handler: (chunk: string | null) => void): () => void {
    setImmediate(() => {
      for (const chunk of this.keys) handler(chunk);
    });
    return () => undefined;
  }
  close(): void {
    this.closed = true;
  }
}

let stub: StubService;
let home: string;
let input: ScriptedInput;
let printed: string;
let chat: Conversation;

async function open(interactive: boolean): Promise<void> {
  printed = "";
  const sink = {
    write: (text: string) => {
      printed += text;
    },
    columns: 100,
    rows: 24,
  };
  const api = new Api(stub.url);
  input = new ScriptedInput();
  chat = newConversation({
    api,
    screen: new Screen(sink, sink, { interactive, color: false }),
    input,
    statePath: join(home, "selfsame", "chat.jsonl"),
    model: undefined,
    session: await api.createSession({ agent: "concierge" }),
    directory: home,
  });
}

beforeEach(async () => {
  stub = await new StubService().start();
  home = await mkdtemp(join(tmpdir(), "selfsame-chat-"));
  await open(true);
});
afterEach(async () => {
  await stub.stop();
  await rm(home, { recursive: true });
});

/** Runs one line and returns what it printed. */
async function run(line: string): Promise<string> {
  printed = "";
  await handleLine(chat, line);
  return printed;
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2));
}

describe("a message", () => {
  it("streams its answer", async () => {
    expect(await run("hello")).toBe("Wren  You said: hello\n");
    expect(chat.failed).toBe(false);
  });

  it("is sent with one slash when typed with two", async () => {
    expect(await run("//etc")).toBe("Wren  You said: /etc\n");
  });

  it("keeps control characters of the model from the terminal", async () => {
    expect(await run("controls")).toBe("Wren  a[2Jb31mc\td\n");
  });

  it("marks a dropped attempt, a tool, a replaced text", async () => {
    expect(await run("reset")).toBe("Wren  wrong\n[a new attempt: the text above is dropped]\nright\n");
    expect(await run("resync")).toBe("Wren  abc\n");
    expect(await run("tool")).toBe("Wren  Let me look. \n[tool weather: running]\n[tool weather: done]\nIt rains.\n");
  });

  it.each([
    ["fail", "The turn failed. The model provider is not available (provider_unavailable)."],
    ["unknown", "The outcome of this turn is not known"],
    ["busy", "Too many queued turns: 100 turns are waiting. (queue_full, HTTP 429)"],
  ])("that ends as %s says why, and the next one works", async (line, reason) => {
    expect(await run(line)).toContain(reason);
    expect(chat.failed).toBe(true);
    expect(await run("still here?")).toContain("You said: still here?");
  });

  it("is cancelled on request", async () => {
    const sent = run("open");
    await until(() => printed.includes("thinking"));
    await cancelRunning(chat);
    expect(await sent).toContain("thinking\nThe turn was cancelled.\n");
    expect(stub.requests("POST", /turns\/turn-1\/cancel$/)).toHaveLength(1);
  });

  it("leaves no timer behind when its end came before the answer to the cancel", async () => {
    const sent = run("open");
    await until(() => printed.includes("thinking"));
    const cancel = chat.api.cancelTurn.bind(chat.api);
    chat.api.cancelTurn = async (...args) => {
      await cancel(...args);
      await sent;
    };
    const timer = vi.spyOn(globalThis, "setTimeout");
    await cancelRunning(chat);
    expect(timer.mock.calls.filter(([, ms]) => ms === 10_000)).toEqual([]);
    timer.mockRestore();
  });

  it("is cancelled even if Ctrl-C came before its id was known", async () => {
    const sent = run("open");
    await cancelRunning(chat);
    expect(stub.requests("POST", /cancel$/)).toHaveLength(0);
    expect(await sent).toContain("The turn was cancelled.");
  });

  it("is no longer shown when the service cannot cancel, and that is said", async () => {
    stub.canCancel = false;
    const sent = run("open");
    await until(() => printed.includes("thinking"));
    await cancelRunning(chat);
    expect(await sent).toContain(
      "Not found: There is no such thing. (not_found, HTTP 404)\nSo the turn is not cancelled.",
    );
    expect(chat.running).toBeNull();
    expect(await run("next")).toContain("You said: next");
  });
});

describe("Ctrl-C", () => {
  it("cancels the turn, and leaves the second time", async () => {
    const codes: number[] = [];
    const shell = new Shell(chat, (code) => codes.push(code));
    stub.canCancel = false;
    input.lines = ["open"];
    const done = shell.run();
    await until(() => printed.includes("thinking"));
    shell.interrupt(1000);
    shell.interrupt(2500);
    expect(codes).toEqual([130]);
    expect(await done).toBe(0);
  });
});

describe("/resume", () => {
  it.each([
    ["an unknown id", "nowhere", "Not found: There is no such session. (not_found, HTTP 404)"],
    ["a service in trouble", "ill", "Storage is not available: Try again. (storage_unavailable, HTTP 503)"],
  ])("of %s says why and stays", async (_, id, reason) => {
    const title = "Storage is not available";
    stub.refuse.set("/v1/sessions/ill", { status: 503, code: "storage_unavailable", title, detail: "Try again." });
    const before = chat.session;
    expect(await run(`/resume ${id}`)).toContain(reason);
    expect(chat.session).toBe(before);
    expect(await run("hello")).toContain("You said: hello");
    expect(stub.requests("POST", /turns$/).at(-1)?.path).toContain(before.id);
  });

  it("shows the last six messages and gives the arrows the user's own", async () => {
    await run("one");
    await run("two");
    await run("three");
    await run("four");
    const { id } = chat.session;
    await run("/new");
    expect(chat.session.id).not.toBe(id);
    const shown = await run(`/resume ${id}`);
    expect(chat.session.id).toBe(id);
    expect(shown.match(/^you /gm)).toHaveLength(3);
    expect(shown.match(/^Wren {2}You said/gm)).toHaveLength(3);
    expect(shown).not.toContain("You said: one");
    expect(input.history).toEqual(["four", "three", "two", "one"]);
  });

  it("goes on when only the messages cannot be read", async () => {
    stub
      .addSession("old")
      .messages.push({ seq: 1, id: "m", role: "user", text: "x", status: "complete", ts: "", turn: "t" });
    const title = "Storage is not available";
    stub.refuse.set("/v1/sessions/old/messages", { status: 503, code: "storage_unavailable", title, detail: "" });
    expect(await run("/resume old")).toContain("Earlier messages cannot be shown: Storage is not available");
    expect(chat.session.id).toBe("old");
  });

  it("lets one choose with keys, leaves out what is gone and this session", async () => {
    for (const [i, id] of ["first", "gone", "last", chat.session.id].entries()) {
      if (id !== "gone") stub.addSession(id);
      await recordUse(chat.statePath, { url: stub.url, id, agent: "concierge", at: `2026-01-01T00:00:0${i}Z` });
    }
    input.keys = ["\x1b[B", "\r"];
    const shown = await run("/resume");
    expect(shown).toContain("1 session no longer there");
    const list = shown.slice(0, shown.indexOf("↑ ↓"));
    expect(list).toMatch(/1 {2}concierge +Wren +0 messages +\d+ days ago +last\n {2}2 {2}.*first\n/);
    expect(chat.session.id).toBe("first");
    input.keys = ["\x1b", ...["q"]];
    expect(await run("/resume")).toContain("still in the same session");
    expect(chat.session.id).toBe("first");
  });

  it("takes a number where there are no keys", async () => {
    await open(false);
    stub.addSession("other");
    await recordUse(chat.statePath, { url: stub.url, id: "other", agent: "concierge", at: "2026-01-01T00:00:00Z" });
    input.lines = ["7", "1"];
    expect(await run("/resume")).toContain("There is no session number 7");
    expect(chat.session.id).not.toBe("other");
    await run("/resume");
    expect(chat.session.id).toBe("other");
  });

  it("says so when there is nothing to choose from", async () => {
    expect(await run("/resume")).toContain("No other session of this service was used here");
  });

  it("does not end when the service is gone", async () => {
    await recordUse(chat.statePath, { url: stub.url, id: "x", agent: "a", at: "2026-01-01T00:00:00Z" });
    await stub.stop();
    expect(await run("/resume")).toContain("the connection is refused");
  });
});

describe("/cd", () => {
  it("sends the rules and tells old from new", async () => {
    await mkdir(join(home, "shop"));
    await writeFile(join(home, "shop", "AGENTS.md"), "\uFEFFBe kind.\r\nAlways.\n");
    const { id } = chat.session;
    expect(await run("/cd shop")).toMatch(/^project shop: sha256:\w{12}, epoch 1 → sha256:\w{12}, epoch 2\n$/);
    const [refresh] = stub.requests("POST", /refresh$/);
    expect(JSON.parse(refresh?.body ?? "")).toEqual({ project: { name: "shop", rules: "Be kind.\nAlways.\n" } });
    expect(refresh?.path).toBe(`/v1/sessions/${id}/refresh`);
    expect(await run("/cd .")).toMatch(/^project shop: unchanged: sha256:\w{12}, epoch 2\n$/);
  });

  it("sends nothing when there is nothing to read", async () => {
    await writeFile(join(home, "file"), "");
    await mkdir(join(home, "odd", "AGENTS.md"), { recursive: true });
    await mkdir(join(home, "latin"));
    await writeFile(join(home, "latin", "AGENTS.md"), Buffer.from([0x67, 0xfc, 0x6e]));
    const before = chat.directory;
    expect(await run("/cd nowhere")).toContain(`Cannot read ${join(home, "nowhere", "AGENTS.md")}: there is none`);
    expect(await run("/cd file")).toContain("it is not in a directory");
    expect(await run("/cd odd")).toContain("it is not a file");
    expect(await run("/cd latin")).toContain("is not UTF-8 text");
    expect(await run("/cd")).toContain("/cd needs a directory");
    expect(stub.requests("POST", /refresh$/)).toHaveLength(0);
    expect(chat.directory).toBe(before);
  });
});

describe("the other commands", () => {
  it("/new starts a session, with another agent too; an unknown one changes nothing", async () => {
    const first = chat.session;
    expect(await run("/new nobody")).toContain('agent: no agent "nobody"');
    expect(chat.session).toBe(first);
    expect(await run("/new standup")).toContain("agent standup");
    expect(chat.session.agent).toBe("standup");
    await run("/new");
    expect(chat.session.agent).toBe("standup");
  });

  it("/refresh, /clear and /context", async () => {
    expect(await run("/refresh")).toMatch(/^instructions: unchanged: sha256:\w{12}, epoch 1\n$/);
    expect(await run("/clear")).toMatch(/^The history is cleared\. Instructions: .*epoch 1 → .*epoch 2\n$/);
    expect(await run("/context")).toContain("12,000 of 100,000 tokens used (12%)\n█▓▒▒▒▒▒···");
  });

  it("/prompt shows the text and checks its hash", async () => {
    const good = await run("/prompt");
    expect(good).toContain("You are Wren.\n\nBe brief.\nsha256 ");
    expect(good).toContain("24 bytes, model demo/echo, epoch 1");
    expect(good).toContain("The text above has this hash.");
    stub.promptText = "You are Crow.";
    expect(await run("/prompt")).toContain("does NOT have this hash");
  });

  it("an unknown command lists the known ones and is not sent", async () => {
    expect(await run("/nonsense x")).toContain("There is no command /nonsense. The commands: /new /resume");
    expect(await run("/refresh x")).toContain("/refresh takes no argument");
    expect(stub.requests("POST", /turns$/)).toHaveLength(0);
    expect(await run("/help")).toContain("/cd DIR");
  });
});

describe("the list of used sessions", () => {
  it("gets one line a session, at the first message, without a word of it", async () => {
    await run("my secret");
    await run("another secret");
    const lines = (await readFile(chat.statePath, "utf8")).trimEnd().split("\n");
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(chat.session.id);
    expect(lines[0]).not.toContain("secret");
  });

  it("is given up with one note when it cannot be written", async () => {
    await writeFile(join(home, "selfsame"), "in the way");
    expect(await run("one")).toContain("The list for /resume is not kept");
    expect(await run("two")).toBe("Wren  You said: two\n");
    expect(chat.failed).toBe(false);
  });
});

describe("reading many", () => {
  it("reads all pages of messages", async () => {
    const { messages } = stub.addSession("long");
    for (let seq = 1; seq <= 450; seq += 1) {
      messages.push({ seq, id: `m${seq}`, role: "user", text: "x", status: "complete", ts: "", turn: "t" });
    }
    const { items, cut } = await readMessages(new Api(stub.url), "long");
    expect([items.length, items.at(-1)?.seq, cut]).toEqual([450, 450, false]);
  });

  it("runs at most so many at a time, and keeps the order", async () => {
    let running = 0;
    let most = 0;
    const results = await parallel([5, 1, 4, 2, 3, 0], 4, async (n) => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, n));
      running -= 1;
      return n * 10;
    });
    expect(results).toEqual([50, 10, 40, 20, 30, 0]);
    expect(most).toBe(4);
  });
});
