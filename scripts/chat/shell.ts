/** The loop: a line, what it means, and back; and what Ctrl-C does meanwhile. */
import { runCommand } from "./commands.ts";
import { type Conversation, showError } from "./conversation.ts";
import { onInterrupt } from "./interrupt.ts";
import { parseLine } from "./parse-line.ts";
import { cancelRunning, sendMessage } from "./send-message.ts";

/** One line of input. Errors are shown; nothing is thrown. */
export async function handleLine(chat: Conversation, line: string): Promise<void> {
  const parsed = parseLine(line);
  try {
    if (parsed.kind === "message") await sendMessage(chat, parsed.text);
    if (parsed.kind === "command") await runCommand(chat, parsed.name, parsed.argument);
  } catch (error) {
    showError(chat, error);
  }
}

export class Shell {
  readonly #chat: Conversation;
  readonly #exit: (code: number) => void;
  #phase: "prompt" | "work" = "work";
  #lastInterrupt: number | null = null;
  #asked = false;

  /** `exit` ends the process at once: for a second Ctrl-C, when something hangs. */
  constructor(chat: Conversation, exit: (code: number) => void) {
    this.#chat = chat;
    this.#exit = exit;
  }

  /** Until the input ends or the user leaves. Returns the exit code. */
  async run(): Promise<number> {
    const { input, screen } = this.#chat;
    while (!this.#chat.leaving) {
      this.#phase = "prompt";
      const line = await input.next();
      this.#phase = "work";
      if (line === null) {
        // Ctrl-D leaves the cursor behind the prompt.
        screen.control("\n");
        break;
      }
      this.#lastInterrupt = null;
      this.#asked = false;
      await handleLine(this.#chat, line);
    }
    input.close();
    return this.#chat.failed && !screen.interactive ? 1 : 0;
  }

  /** Ctrl-C, or SIGINT from elsewhere. */
  interrupt(now = Date.now()): void {
    const { input, screen, running } = this.#chat;
    const phase = running ? "turn" : this.#phase === "prompt" ? "prompt" : "command";
    const state = { last: this.#lastInterrupt, asked: this.#asked, phase, typed: input.typed() } as const;
    this.#lastInterrupt = now;
    switch (onInterrupt(state, now)) {
      case "cancel":
        screen.freshLine();
        screen.note("cancelling… (Ctrl-C again leaves)");
        // A pipe has nobody who could decide about the lines that are left.
        if (!screen.interactive) this.#chat.leaving = true;
        void cancelRunning(this.#chat);
        return;
      case "discard_line":
        this.#lastInterrupt = null;
        this.#asked = false;
        input.discardLine();
        return;
      case "ask":
        this.#asked = true;
        if (!screen.interactive) {
          this.#exit(130);
          return;
        }
        if (phase === "prompt") screen.control("\n");
        screen.note("Ctrl-C again leaves, /help lists the commands");
        input.redraw();
        return;
      case "leave":
        screen.control("\n");
        // At the prompt nothing is open: the ordinary way out.
        if (phase === "prompt") input.close();
        else this.#exit(130);
    }
  }
}
