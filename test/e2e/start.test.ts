/** Failure class: the first command a newcomer types hangs, says something false, or leaves processes behind. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { groupMembers } from "../../scripts/lib/processes.ts";
import { createWorkspace, type Workspace } from "../../scripts/lib/workspace.ts";
import { freePort } from "../../scripts/lib/wrangler.ts";
import { connectOutcome, isAlive } from "./support/bench.ts";
import { type RunningScript, runNode, runNpm } from "./support/script.ts";
import { eventually } from "./support/wait.ts";

let workspace: Workspace;
const running: RunningScript[] = [];
const mayTry = new Set<RunningScript>();
beforeEach(() => {
  workspace = createWorkspace();
});
afterEach(async ({ task }) => {
  const scripts = running.splice(0);
  for (const script of scripts) {
    await script.cleanUp();
    if (task.result?.state === "fail") console.error(`out:\n${script.out()}\nerr:\n${script.err()}`);
  }
  const left = await lasting(workspace.path);
  for (const { pid } of left) process.kill(pid, "SIGKILL");
  workspace.remove();
  expect(left, "processes that outlived what started them").toEqual([]);
  for (const script of scripts) {
    expect(script.remote()).toEqual([]);
    if (!mayTry.has(script)) expect(script.err()).not.toContain("not loopback:");
  }
});

function npm(...args: string[]): RunningScript {
  const script = runNpm(workspace.root, workspace.home, args);
  running.push(script);
  return script;
}

function start(...args: string[]): RunningScript {
  const script = runNode(workspace.root, workspace.home, ["scripts/start.ts", ...args]);
  running.push(script);
  return script;
}

const ready = (script: RunningScript) =>
  eventually("it is ready", 60_000, () => /Selfsame is ready: (\S+)/.exec(script.out())?.[1]);

/** Every process of this machine whose command line names the workspace: wrangler, workerd, the build. */
function processesOf(path: string): { pid: number; line: string }[] {
  const list = execFileSync("ps", ["-A", "-ww", "-o", "pid=,args="], { encoding: "utf8" });
  const lines = list.split("\n").filter((line) => line.includes(path));
  return lines.map((line) => ({ pid: Number.parseInt(line, 10), line }));
}

/** Those that are there to stay: what was killed a moment ago may take another one to end on a busy machine. */
async function lasting(path: string): Promise<{ pid: number; line: string }[]> {
  const deadline = Date.now() + 3000;
  while (processesOf(path).length > 0 && Date.now() < deadline) await delay(50);
  return processesOf(path);
}

describe("npm start", () => {
  test("prints the address and curl lines that work as they are, and nothing to explain", async () => {
    const port = await freePort();
    const script = npm("start", "--", "--port", String(port));
    expect(await ready(script)).toBe(`http://127.0.0.1:${port}`);
    await eventually("the text is complete", 5000, () => script.out().includes("Ctrl-C stops it."));

    const lines = script
      .out()
      .split("\n")
      .filter((line) => line.trimStart().startsWith("curl "));
    expect(lines.length).toBe(2);
    const [made, said] = lines.map(
      (line) => JSON.parse(execFileSync("sh", ["-c", line], { encoding: "utf8" })) as Record<string, unknown>,
    );
    expect(made).toMatchObject({ agent: "concierge", messageCount: 0, model: "demo/echo" });
    expect(said).toMatchObject({ state: "completed", output: { text: expect.stringContaining("sha256") } });

    // npm's own two lines, and ours; nothing of wrangler's banner, table or warnings.
    expect(script.out()).not.toMatch(/wrangler \d|⛅|binding|WARNING|\bat .*:\d+:\d+/i);
    expect(script.err()).toBe("");
    expect(statSync(join(workspace.root, ".wrangler/state")).mode & 0o077).toBe(0);

    await fetch(`http://127.0.0.1:${port}/v1/nothing`);
    await eventually("a failed request is shown", 5000, () => /GET \/v1\/nothing 404/.test(script.err()));
  });

  test.each(["SIGTERM", "SIGINT"] as const)("%s ends every process", async (signal) => {
    const port = await freePort();
    const script = npm("start", "--", "--port", String(port));
    await ready(script);
    const before = processesOf(workspace.path).map(({ pid }) => pid);
    expect(before.length).toBeGreaterThan(1);
    // A terminal sends Ctrl-C to the whole group; a supervisor's SIGTERM reaches npm alone.
    process.kill(signal === "SIGINT" ? -script.pid : script.pid, signal);
    await script.ended(15_000);
    await eventually(
      "all of it has ended",
      15_000,
      () => !before.some(isAlive) && groupMembers(script.pid)?.length === 0,
    );
    expect(processesOf(workspace.path)).toEqual([]);
    expect(await connectOutcome(port)).toBe("ECONNREFUSED");
    expect(script.err()).not.toMatch(/wrangler|\bat .*:\d+:\d+/);
  });

  test("SIGTERM to the script itself ends it with 0", async () => {
    const script = start("--port", String(await freePort()));
    await ready(script);
    process.kill(script.pid, "SIGTERM");
    expect(await script.ended(15_000)).toBe(0);
    expect(processesOf(workspace.path)).toEqual([]);
  });

  test("says so when a SIGNING_KEY turns the development principal off", async () => {
    writeFileSync(join(workspace.root, ".dev.vars"), `SIGNING_KEY=${"k".repeat(43)}\n`);
    const script = start("--port", String(await freePort()));
    const url = await ready(script);
    await eventually("the text is complete", 5000, () => script.out().includes("Ctrl-C stops it."));
    expect(script.out()).toContain(".dev.vars sets SIGNING_KEY");
    expect(script.out()).not.toContain("No key is needed");
    expect((await fetch(`${url}/v1/agents`)).status).toBe(401);
    // In the order they are printed, as one would paste them into a terminal in the project.
    const lines = script
      .out()
      .split("\n")
      .filter((line) => /^ {2}(export|curl) /.test(line));
    const said = execFileSync("sh", ["-ec", lines.join("\n")], {
      cwd: workspace.root,
      env: { PATH: process.env.PATH, HOME: workspace.home },
      encoding: "utf8",
    });
    expect(lines.length).toBe(3);
    expect(said).toContain('"state":"completed"');
  });
});

describe("what cannot start says why and ends", () => {
  test("a wrong prompt file: its place", async () => {
    workspace.edit("prompts/agents/concierge/AGENTS.md", (text) => `${text.trimEnd()}\nHello {{nonsense}}\n`);
    const lines = workspace.read("prompts/agents/concierge/AGENTS.md").trimEnd().split("\n").length;
    const script = start("--port", String(await freePort()));
    expect(await script.ended(60_000)).toBe(1);
    expect(script.err()).toContain(`prompts/agents/concierge/AGENTS.md:${lines}: unknown placeholder {{nonsense}}`);
    expect(script.err()).not.toMatch(/ChildProcess|\bat .*:\d+:\d+/);
    expect(script.out()).not.toContain("ready");
  });

  test("a Worker that cannot be bundled: file and line", async () => {
    workspace.edit("src/index.ts", (text) => `${text}let x = ;\n`);
    const script = start("--port", String(await freePort()));
    expect(await script.ended(60_000)).toBe(1);
    expect(script.err()).toMatch(/src\/index\.ts:\d+:\d+/);
  });

  test("a Worker that throws at once: its message", async () => {
    workspace.edit("src/index.ts", (text) => `${text}throw new Error("thrown at once");\n`);
    const script = start("--port", String(await freePort()));
    expect(await script.ended(60_000)).toBe(1);
    expect(script.err()).toContain("thrown at once");
    // Here, and only here, wrangler looks for a newer version of itself. The guard stops it.
    mayTry.add(script);
  });

  test("a port that is taken: which, and what to do", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const script = start("--port", String(port));
    expect(await script.ended(20_000)).toBe(1);
    expect(script.err()).toContain(`Port ${port} of 127.0.0.1 is in use`);
    other.close();
  });

  test.each(["start.ts", "dev.ts"])("%s: a SIGNING_KEY that cannot be used, in the words of mint-key", async (name) => {
    writeFileSync(join(workspace.root, ".dev.vars"), "SIGNING_KEY=hunter2\n");
    const script = runNode(workspace.root, workspace.home, [`scripts/${name}`, "--port", String(await freePort())]);
    running.push(script);
    expect(await script.ended(20_000)).toBe(1);
    expect(script.err()).toContain("The SIGNING_KEY in .dev.vars cannot be used.");
    expect(script.err()).toContain("npm run --silent mint-key -- --new-key");
    expect(script.err()).not.toContain("hunter2");
    expect(script.out()).toBe("");
  });

  test("an unknown option: the usage", async () => {
    const script = start("--prot", "1");
    expect(await script.ended(20_000)).toBe(2);
    expect(script.err()).toContain("Usage: npm start");
  });
});

describe("one storage folder", () => {
  test("serves one: npm start and npm run dev are refused beside it, and come after it, also after SIGKILL", async () => {
    const state = join(workspace.path, "shared state");
    const options = async () => ["--port", String(await freePort()), "--persist-to", state];
    const first = start(...(await options()));
    await ready(first);
    const holder = readFileSync(join(state, "selfsame.lock"), "utf8").trim();

    const dev = runNode(workspace.root, workspace.home, ["scripts/dev.ts", ...(await options())]);
    running.push(dev);
    for (const second of [start(...(await options())), dev]) {
      expect(await second.ended(20_000)).toBe(1);
      expect(second.err()).toContain(`process ${holder} works with ${state}`);
      expect(second.out()).not.toContain("eady");
    }
    // npm start alone is killed: what it started goes on for as long as it likes, and so does the lock.
    process.kill(first.pid, "SIGKILL");
    const third = start(...(await options()));
    expect(await third.ended(20_000)).toBe(1);
    expect(third.err()).toContain(`process ${holder} works with`);

    process.kill(-Number(holder), "SIGKILL");
    await eventually("it is gone", 5000, () => groupMembers(Number(holder))?.length === 0);
    expect(existsSync(join(state, "selfsame.lock"))).toBe(true);
    const fourth = start(...(await options()));
    await ready(fourth);
    process.kill(fourth.pid, "SIGTERM");
    expect(await fourth.ended(15_000)).toBe(0);
    expect(existsSync(join(state, "selfsame.lock"))).toBe(false);
  });

  test("that cannot be one: why", async () => {
    const file = join(workspace.path, "a file");
    writeFileSync(file, "");
    const script = start("--port", String(await freePort()), "--persist-to", file);
    expect(await script.ended(20_000)).toBe(1);
    expect(script.err()).toContain(`${file} cannot be used: EEXIST`);
  });
});

test("a prompt file broken while it runs is named, the service goes on, and mending it is adopted", async () => {
  const script = start("--port", String(await freePort()));
  const url = await ready(script);
  const file = "prompts/agents/concierge/AGENTS.md";
  const good = workspace.read(file);
  workspace.write(file, `${good}\n{{nonsense}}\n`);
  await eventually("the fault is named", 20_000, () => script.err().includes("unknown placeholder {{nonsense}}"));
  await eventually("and what it means", 5000, () => script.err().includes("goes on with the prompts it has"));
  await eventually("and it is ready again", 20_000, () => script.err().includes("Ready, with the prompts it had."));
  expect(script.err()).not.toContain("Built again and ready.");
  expect((await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(5000) })).status).toBe(200);
  workspace.write(file, `${good}\nMended.\n`);
  const headers = { "content-type": "application/json" };
  await eventually("the mended text is in a new session", 20_000, async () => {
    const init = { method: "POST", headers, body: '{"agent":"concierge"}' };
    const { id } = (await (await fetch(`${url}/v1/sessions`, init)).json()) as { id: string };
    return (await (await fetch(`${url}/v1/sessions/${id}/contract`)).text()).includes("Mended.");
  });
  await eventually("which is said", 5000, () => script.err().includes("Built again and ready."));
});

test("npm run dev hands its options to wrangler", async () => {
  const port = await freePort();
  const state = join(workspace.path, "elsewhere");
  const script = npm(
    "run",
    "dev",
    "--",
    "--port",
    String(port),
    "--persist-to",
    state,
    "--var",
    "DEFAULT_MODEL:openai/gpt-test",
  );
  await eventually("wrangler says that it is ready", 60_000, () =>
    script.out().includes(`Ready on http://127.0.0.1:${port}`),
  );
  const body = JSON.stringify({ agent: "concierge" });
  const made = await fetch(`http://127.0.0.1:${port}/v1/sessions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
  });
  expect(await made.json()).toMatchObject({ model: "openai/gpt-test" });
  expect(statSync(state).mode & 0o077).toBe(0);
  process.kill(script.pid, "SIGTERM");
  await script.ended(15_000);
  await eventually("all of it has ended", 15_000, () => processesOf(workspace.path).length === 0);
});

test("npm run dev lets nobody in without a key when it is opened to others", async () => {
  const port = await freePort();
  const script = npm("run", "dev", "--", "--port", String(port), "--ip", "0.0.0.0");
  await eventually("wrangler says that it is ready", 60_000, () => script.out().includes("Ready on"));
  expect(script.err()).toContain("--ip 0.0.0.0: the development principal is off");
  expect((await fetch(`http://127.0.0.1:${port}/v1/agents`)).status).toBe(503);
});
