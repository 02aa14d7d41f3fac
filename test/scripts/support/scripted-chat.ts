/** A conversation of the client with the stub service: no terminal, output in a string. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Api } from "../../../scripts/chat/api.ts";
import { type Conversation, newConversation } from "../../../scripts/chat/conversation.ts";
import type { LineInput } from "../../../scripts/chat/line-input.ts";
import { Screen } from "../../../scripts/chat/screen.ts";
import { handleLine } from "../../../scripts/chat/shell.ts";
import { StubService } from "./stub-service.ts";

/** Lines from a list; keys from a script; remembers the history it was given. */
export class ScriptedInput implements LineInput {
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

/** One client in its own home directory, in a new session, with a service of its own. */
export class ScriptedChat {
  readonly stub = new StubService();
  readonly input = new ScriptedInput();
  printed = "";
  home = "";
  chat!: Conversation;

  async start(): Promise<this> {
    await this.stub.start();
    this.home = await mkdtemp(join(tmpdir(), "selfsame-chat-"));
    await this.open(true);
    return this;
  }

  /** A conversation in a new session. */
  async open(interactive: boolean): Promise<void> {
    const sink = {
      write: (text: string) => {
        this.printed += text;
      },
      columns: 100,
      rows: 24,
    };
    const api = new Api(this.stub.url);
    this.chat = newConversation({
      api,
      screen: new Screen(sink, sink, { interactive, color: false }),
      input: this.input,
      statePath: join(this.home, "selfsame", "chat.jsonl"),
      model: undefined,
      session: await api.createSession({ agent: "concierge" }),
      directory: this.home,
    });
  }

  /** Runs one line and returns what it printed. */
  async run(line: string): Promise<string> {
    this.printed = "";
    await handleLine(this.chat, line);
    return this.printed;
  }

  async stop(): Promise<void> {
    await this.stub.stop();
    await rm(this.home, { recursive: true });
  }
}

/** Waits for something that comes from the network; the test's own time limit ends it. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2));
}
