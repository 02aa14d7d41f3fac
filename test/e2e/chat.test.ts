/** Failure class: the terminal client and the real service disagree on what became of a turn. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, test } from "vitest";
import { MODEL, useBench } from "./support/bench.ts";

const bench = useBench(async (open) => {
  await open.start();
});

interface Chat {
  code: number | null;
  out: string;
  err: string;
}

/** The client on a pipe, with these lines as its input. */
async function chat(...lines: string[]): Promise<Chat> {
  const { service, workspace } = bench();
  const script = join(workspace.root, "scripts/chat.ts");
  const child = spawn(process.execPath, [script, "--url", service.url, "--model", MODEL], {
    cwd: workspace.root,
    env: { PATH: process.env.PATH, HOME: workspace.home, NO_COLOR: "1" },
  });
  const [out, err]: [Buffer[], Buffer[]] = [[], []];
  child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => err.push(chunk));
  child.stdin.end(`${lines.join("\n")}\n`);
  const [code] = (await once(child, "close")) as [number | null];
  return { code, out: Buffer.concat(out).toString(), err: Buffer.concat(err).toString() };
}

test("a message is answered, and the client leaves with 0", async () => {
  const { code, out } = await chat("hello there");
  expect(out).toMatch(/^Answer \d+, to \d+ messages\.$/m);
  expect(code).toBe(0);
});

test("a refusal is shown with its status, and /retry sends the same message once more", async () => {
  const { provider } = bench();
  provider.state.script({ kind: "status", status: 401, match: { text: "say it twice" } });
  const { code, out, err } = await chat("say it twice", "/retry");
  expect(err).toContain("The model provider refused the request (provider_rejected). It answered 401.");
  expect(out).toMatch(/^Answer \d+/m);
  expect(code, "a turn had failed").toBe(1);
  const sent = provider.requests.filter(({ body }) => body.includes("say it twice"));
  expect(sent).toHaveLength(2);
  expect(sent[1]!.body.equals(sent[0]!.body), "the same bytes").toBe(true);
});

test("/retry of an answered message, and of nothing, says why not", async () => {
  expect((await chat("/retry")).err).toContain("Nothing has been said in this session yet");
  expect((await chat("fine", "/retry")).err).toContain("The last message is completed");
});
