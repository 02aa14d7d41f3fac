/** The gate before the line editor: what is typed when, what a paste is, and how input ends. */
import { PassThrough, Writable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { TerminalInput } from "../../scripts/chat/terminal-input.ts";

let printed: string;
let modes: boolean[];
let interrupts: number;
let stdin: PassThrough & { setRawMode(on: boolean): void };
let input: TerminalInput;

beforeEach(() => {
  printed = "";
  modes = [];
  interrupts = 0;
  stdin = Object.assign(new PassThrough(), { setRawMode: (on: boolean) => void modes.push(on) });
  const stdout = new Writable({
    write(chunk, _encoding, done) {
      printed += String(chunk);
      done();
    },
  });
  input = new TerminalInput(stdin, stdout, {
    prompt: "> ",
    complete: () => [],
    onInterrupt: () => {
      interrupts += 1;
    },
  });
});
afterEach(() => input.close());

/** Input has gone through all streams. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 5));

describe("TerminalInput", () => {
  it("gives what is typed at the prompt", async () => {
    const line = input.next();
    stdin.write("helo\x7flo\r");
    expect(await line).toBe("hello");
    expect(printed).toContain("> ");
  });

  it("keeps what is typed while nobody asks, unseen, and gives it one line at a time", async () => {
    stdin.write("one\rtwo\rthr");
    await settled();
    expect(printed).not.toContain("one");
    expect(await input.next()).toBe("one");
    await settled();
    expect(printed).not.toContain("two");
    expect(await input.next()).toBe("two");
    const third = input.next();
    stdin.write("ee\r");
    expect(await third).toBe("three");
  });

  it("lets Ctrl-C through at any time, and forgets what was typed ahead", async () => {
    stdin.write("ahead\r");
    stdin.write("\x03\x03");
    await settled();
    expect(interrupts).toBe(2);
    const line = input.next();
    stdin.write("\x03");
    await settled();
    expect(interrupts).toBe(3);
    stdin.write("new\r");
    expect(await line).toBe("new");
  });

  it("goes on after an Enter that ends no line", async () => {
    const line = input.next();
    stdin.write("a\x1b\rb\r");
    expect(await line).toBe("ab");
  });

  it("takes a paste of many lines as one message", async () => {
    const line = input.next();
    stdin.write("\x1b[200~one\r\ntwo\x03\n");
    stdin.write("three\x1b[201~\r");
    expect(await line).toBe("one\ntwo\nthree");
    expect(interrupts).toBe(0);
  });

  it("brings back given lines, many-line ones as one", async () => {
    input.setHistory(["new\nest", "older"]);
    const line = input.next();
    stdin.write("\x1b[A\x1b[A\x1b[B\r");
    expect(await line).toBe("new\nest");
  });

  it("discards a whole line, wherever the cursor is", async () => {
    const line = input.next();
    stdin.write("hello\x1b[D\x1b[D");
    await settled();
    expect(input.typed()).toBe(true);
    input.discardLine();
    expect(input.typed()).toBe(false);
    stdin.write("x\r");
    expect(await line).toBe("x");
  });

  it("hands raw keys to one who takes them, and only then", async () => {
    const seen: (string | null)[] = [];
    const release = input.takeKeys((chunk) => seen.push(chunk));
    stdin.write("\x1b[A");
    await settled();
    release();
    const line = input.next();
    stdin.write("x\r");
    expect(await line).toBe("x");
    expect(seen).toEqual(["\x1b[A"]);
  });

  it("ends at Ctrl-D, with the terminal's input, and stays ended", async () => {
    const line = input.next();
    stdin.write("\x04");
    expect(await line).toBeNull();
    expect(await input.next()).toBeNull();
    expect(modes.at(-1)).toBe(false);
  });

  it("ends when the terminal goes away, also while keys are taken", async () => {
    const seen: (string | null)[] = [];
    input.takeKeys((chunk) => seen.push(chunk));
    stdin.end();
    await settled();
    expect(seen).toEqual([null]);
    expect(await input.next()).toBeNull();
  });

  it("leaves the terminal as it was", () => {
    input.close();
    expect(modes).toEqual([true, false]);
    expect(printed.startsWith("\x1b[?2004h")).toBe(true);
    expect(printed.endsWith("\x1b[?2004l")).toBe(true);
  });
});
