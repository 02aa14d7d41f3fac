/** The whole program with standard input from a pipe, as a child process. */
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { StubService } from "./support/stub-service.ts";

let stub: StubService;
let home: string;
beforeEach(async () => {
  stub = await new StubService().start();
  home = await mkdtemp(join(tmpdir(), "selfsame-chat-"));
});
afterEach(async () => {
  await stub.stop();
  await rm(home, { recursive: true });
});

interface Outcome {
  code: number | null;
  out: string;
  err: string;
}

function chat(input: string | null, args: string[] = [], env: Record<string, string> = {}) {
  // The `node` package of this project: the one `npm run` takes.
  const child = spawn(resolve("node_modules/.bin/node"), [resolve("scripts/chat.ts"), ...args], {
    env: { PATH: process.env.PATH, HOME: home, SELFSAME_URL: stub.url, FORCE_COLOR: "1", TERM: "xterm", ...env },
    cwd: home,
  });
  let out = "";
  let err = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    err += text;
  });
  if (input !== null) child.stdin.end(input);
  const done = new Promise<Outcome>((settle) => child.on("close", (code) => settle({ code, out, err })));
  return { child, done };
}

describe("npm run chat on a pipe", () => {
  it("sends one message a line and prints the answers only", async () => {
    const { code, out, err } = await chat("hello\r\n\n//x\nlast").done;
    expect(out).toBe("You said: hello\nYou said: /x\nYou said: last\n");
    expect(err).toBe("session session-1\n");
    expect(code).toBe(0);
    expect(await readFile(join(home, ".local/state/selfsame/chat.jsonl"), "utf8")).toContain('"id":"session-1"');
  });

  it("prints what counts in the end: no dropped attempt, no text twice, no control characters", async () => {
    const { code, out } = await chat("break\nreset\nresync\ntool\ncontrols\n").done;
    expect(out).toBe("one two three\nright\nabc\nLet me look. It rains.\na[2Jb31mc\td\n");
    expect(code).toBe(0);
  });

  it("exits with 1 if any turn failed, after the others", async () => {
    const { code, out, err } = await chat("fail\nhello\n").done;
    expect(out).toBe("half an ans\nYou said: hello\n");
    expect(err).toContain("The turn failed. The model provider is not available (provider_unavailable).");
    expect(code).toBe(1);
  });

  it("exits with 1 if a command failed, and stays in its session", async () => {
    const { code, out, err } = await chat("/resume nowhere\nhello\n/context\n").done;
    expect(err).toContain("Not found: There is no such session. (not_found, HTTP 404)");
    expect(out).toMatch(/^You said: hello\n12,000 of 100,000/);
    expect(code).toBe(1);
    expect(stub.requests("POST", /turns$/)[0]?.path).toBe("/v1/sessions/session-1/turns");
  });

  it("continues a session by id, with the key of the environment", async () => {
    stub.addSession("mine");
    const { code } = await chat("hello\n", ["--session", "mine"], { SELFSAME_KEY: "k" }).done;
    expect(code).toBe(0);
    expect(stub.requests("POST", /./).map(({ path }) => path)).toEqual(["/v1/sessions/mine/turns"]);
    expect(stub.seen.every(({ headers }) => headers.authorization === "Bearer k")).toBe(true);
  });

  it("reads project rules relative to where npm was called", async () => {
    await writeFile(join(home, "AGENTS.md"), "Be kind.");
    const { code, out } = await chat("/cd .\n", [], { INIT_CWD: home }).done;
    expect(out).toMatch(/^project \S+: .*epoch 1 → .*epoch 2\n$/);
    expect(code).toBe(0);
  });

  it("cancels the turn at SIGINT and leaves", async () => {
    const { child, done } = chat(null);
    child.stdin.write("open\nnever sent\n");
    while (stub.requests("POST", /turns$/).length === 0) await new Promise((go) => setTimeout(go, 5));
    child.kill("SIGINT");
    const { code, out, err } = await done;
    expect(out).toBe("thinking\n");
    expect(err).toContain("The turn was cancelled.");
    expect(code).toBe(1);
    expect(stub.requests("POST", /turns$/)).toHaveLength(1);
  });

  it("says what to do when no service is there", async () => {
    await stub.stop();
    const { code, out, err } = await chat("hello\n", []).done;
    expect({ code, out, err }).toEqual({
      code: 1,
      out: "",
      err: `No service answers at ${stub.url}. Start it with: npm start\n`,
    });
  });

  it("shows its usage, and refuses what it does not know", async () => {
    const help = await chat("", ["--help"]).done;
    expect(help.out).toContain("npm run chat -- [options]");
    expect(help.out).toContain("or a command if it begins with /");
    expect(help.code).toBe(0);
    const wrong = await chat("", ["--colour"]).done;
    expect(wrong.err).toContain("--colour");
    expect(wrong.code).toBe(1);
  });
});
