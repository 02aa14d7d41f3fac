/** Failure class: the command shows something else than the log says, says nothing of what is wrong, or leaves traces. */
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { golden, threeTurns } from "../replay/logs.ts";

const SCRIPT = resolve(import.meta.dirname, "../../scripts/replay-session.ts");
const LOGS = resolve(import.meta.dirname, "../fixtures/logs");
const GOLDEN = join(LOGS, "v3");

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "selfsame-replay-test-"));
  mkdirSync(join(folder, "tmp"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const environment = (more: Record<string, string> = {}) => ({
  ...{ PATH: process.env.PATH ?? "", TMPDIR: join(folder, "tmp"), ...more },
});

function replay(...args: string[]): { status: number | null; out: string; err: string } {
  const options = { encoding: "utf8", cwd: LOGS, env: environment(), maxBuffer: 64 * 1024 * 1024 } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, [SCRIPT, ...args], options);
  return { status, out: stdout, err: stderr };
}

/** As `replay`, for commands that talk to a server of this process. */
async function replayAsync(args: string[], env: Record<string, string>) {
  const child = spawn(process.execPath, [SCRIPT, ...args], { cwd: LOGS, env: environment(env) });
  let [out, err] = ["", ""];
  child.stdout.on("data", (data: Buffer) => {
    out += data.toString();
  });
  child.stderr.on("data", (data: Buffer) => {
    err += data.toString();
  });
  child.stdin.end();
  const status = await new Promise<number | null>((done) => child.on("close", done));
  return { status, out, err };
}

describe("a summary", () => {
  test.each([
    ["log-v1.jsonl", "prompts: not recorded: this session predates prompt recording", "full transcript", "turns: 2"],
    ["log-v2-noprompt.jsonl", "prompts: none recorded: persistence likely failed", "full transcript", "turns: 1"],
    ["log-v2-changes.jsonl", "prompts: 3 recorded", "full transcript", "turns: 2"],
    ["log-v2-torn.jsonl", "note: line 5: torn by a write that did not end; skipped", "full transcript", "turns: 1"],
    ["log-v2-torn-utf8.jsonl", "note: line 5: torn", "full transcript", "turns: 1"],
    ["v3/trouble.jsonl", "prompts: 1 recorded", "exactly those that were sent", "turns: 10"],
  ])("of %s", (file, ...said) => {
    const { status, out, err } = replay(file);
    expect([status, err]).toEqual([0, ""]);
    for (const text of said) expect(out).toContain(text);
  });

  test("names the first doubts and counts the others", () => {
    const file = join(folder, "many.jsonl");
    const prompt = JSON.stringify({ type: "prompt", ts: "t", fingerprint: "0", text: "x", reason: "rebuilt" });
    const header = JSON.stringify({ type: "session", id: "s", version: 2, startedAt: "t" });
    writeFileSync(file, `${[header, ...Array<string>(30).fill(prompt)].join("\n")}\n`);
    const { out } = replay(file);
    expect(out.match(/ {2}note: line/g)).toHaveLength(20);
    expect(out).toContain("  note: and 10 more of these\n");
  });

  test("shows no control characters of the log's own", () => {
    const file = join(folder, "evil.jsonl");
    writeFileSync(
      file,
      '{"type":"session","id":"\\u001b[2J","version":1,"startedAt":"t","cwd":"\\u0007","model":"m"}\n',
    );
    expect(replay(file).out).not.toMatch(/[^\n\P{Cc}]/u);
  });
});

describe("--turn", () => {
  test("is verbatim, before and after the id", () => {
    const { status, out } = replay("--turn", "2", "log-v2-tools.jsonl");
    expect(replay("log-v2-tools.jsonl", "--turn", "2").out).toBe(out);
    expect(status).toBe(0);
    for (const text of ["You are Lisa. You keep bees.\n", "count the hives", '"tool_use_id":"t1"', "Seven."]) {
      expect(out).toContain(text);
    }
    expect(out).not.toContain("thanks");
  });

  test("that is not there is an error; --json wins over it", () => {
    expect(replay("log-v1.jsonl", "--turn", "3")).toMatchObject({
      ...{ status: 1, out: "", err: "replay-session: there is no turn 3: the log has 2\n" },
    });
    expect(JSON.parse(replay("log-v1.jsonl", "--turn", "3", "--json").out).turns).toHaveLength(2);
  });

  test("shows temporary text and what is missing", () => {
    expect(replay("v3/trouble.jsonl", "--turn", "1").out).toContain("It is noon.\n");
    expect(replay("log-v1.jsonl", "--turn", "1").out).toContain("predates prompt recording");
  });
});

test("--json is the replay, with doubts on standard error", () => {
  const { status, out, err } = replay("log-v2-torn.jsonl", "--json");
  expect(status).toBe(0);
  expect(JSON.parse(out)).toMatchObject({ promptsRecorded: true, windowRecorded: false, turns: [{ index: 1 }] });
  expect(err).toBe("replay-session: line 5: torn by a write that did not end; skipped\n");
});

describe("--verify", () => {
  test.each([
    ["changes", 12],
    ["demo", 4],
    ["trouble", 14],
  ])("%s", (name, n) => {
    expect(replay(`v3/${name}.jsonl`, "--verify")).toEqual({
      status: 0,
      out: `verified ${n}/${n} requests\n`,
      err: "",
    });
  });

  test("names what differs, and where, and exits 1", () => {
    const file = join(folder, "changed.jsonl");
    writeFileSync(file, threeTurns().text().replace("first", "fiRst"));
    const { status, out, err } = replay(file, "--verify");
    expect([status, out]).toEqual([1, "verified 1/3 requests\n"]);
    expect(err).toMatch(
      /^replay-session: request 2 \(turn_2, attempt 1, call 1, seq 7\): differs at byte 155 or after it/,
    );
    expect(JSON.parse(replay(file, "--verify", "--json").out)).toMatchObject({
      ...{ requests: 3, verified: 1, faults: [{ request: 2, offset: 155 }, { request: 3 }] },
    });
  });

  test("of a cut log says so and exits 1", () => {
    const file = join(folder, "cut.jsonl");
    writeFileSync(file, golden("demo").subarray(0, -20));
    const { status, out, err } = replay(file, "--verify");
    expect([status, out]).toEqual([1, "verified 4/4 requests\n"]);
    expect(err).toMatch(/torn and skipped\nreplay-session: the end line is missing/);
  });

  test.each(["log-v1.jsonl", "log-v2-changes.jsonl"])("of %s has nothing to prove", (file) => {
    const { status, out, err } = replay(file, "--verify");
    expect([status, out]).toEqual([1, "verified 0/0 requests\n"]);
    expect(err).toContain("records no requests");
  });
});

describe("--request", () => {
  /** The hash that the log has of its n-th request. */
  const recorded = (name: string, n: number) =>
    [
      ...golden(name)
        .toString()
        .matchAll(/"bodySha256":"([0-9a-f]{64})"/g),
    ][n - 1]![1];

  test("is the exact body, and nothing else", () => {
    for (const n of [1, 7, 14]) {
      const { status, stdout } = spawnSync(process.execPath, [
        SCRIPT,
        join(GOLDEN, "trouble.jsonl"),
        "--request",
        `${n}`,
      ]);
      expect(status).toBe(0);
      expect(createHash("sha256").update(stdout).digest("hex")).toBe(recorded("trouble", n));
    }
  });

  test("that does not hash to what was recorded is not given out", () => {
    const file = join(folder, "changed.jsonl");
    writeFileSync(file, threeTurns().text().replace("first", "fiRst"));
    const { status, out, err } = replay(file, "--request", "2");
    expect([status, out]).toEqual([1, ""]);
    expect(err).toContain("request 2 does not hash to what was recorded");
  });

  test("--against names the first byte that differs", () => {
    const body = join(folder, "body");
    expect(replay("v3/demo.jsonl", "--request", "2", "--out", body).status).toBe(0);
    expect(replay("v3/demo.jsonl", "--request", "2", "--against", body)).toMatchObject({ status: 0, err: "" });
    const bytes = readFileSync(body);
    bytes[1234] = bytes[1234]! ^ 1;
    writeFileSync(body, bytes);
    const { status, err } = replay("v3/demo.jsonl", "--request", "2", "--against", body);
    expect([status, err]).toMatchObject([1, expect.stringContaining("at byte 1234\n")]);
    writeFileSync(body, readFileSync(body).subarray(0, 1000));
    expect(replay("v3/demo.jsonl", "--request", "2", "--against", body).err).toContain("at byte 1000\n");
  });

  test("that is not there, or of an older version, is an error", () => {
    expect(replay("v3/demo.jsonl", "--request", "5").err).toBe("replay-session: the log has no request 5\n");
    expect(replay("log-v1.jsonl", "--request", "1").status).toBe(1);
  });
});

describe("--list", () => {
  test("has every log of a folder, torn and broken ones too", () => {
    const { status, out } = replay("--list");
    expect(status).toBe(0);
    const row = (file: string) => out.split("\n").find((line) => line.startsWith(file));
    expect(row("log-v2-torn.jsonl")).toMatch(/20260814-090000-d4e5f6 +2 .* 1 +1 +line 5: torn/);
    expect(row("log-v2-bad-middle.jsonl")).toContain("line 3: not a JSON object");
    expect(row("empty.jsonl")).toContain("the log is empty");
    expect(out.trimEnd().split("\n")).toHaveLength(1 + 9);
  });

  test("takes a folder by name or by --dir, and gives JSON", () => {
    const rows = JSON.parse(replay("--list", "v3", "--json").out);
    expect(rows.map(({ id, turns }: { id: string; turns: number }) => [id, turns])).toEqual([
      ["changes", 12],
      ["demo", 4],
      ["trouble", 10],
    ]);
    expect(JSON.parse(replay("--list", "--dir", "v3", "--json").out)).toEqual(rows);
    expect(replay("--list", "nowhere").status).toBe(1);
  });

  test("goes on past a file that cannot be read", () => {
    writeFileSync(join(folder, "a.jsonl"), golden("demo"));
    mkdirSync(join(folder, "b.jsonl"));
    writeFileSync(join(folder, "c.jsonl"), "");
    chmodSync(join(folder, "c.jsonl"), 0);
    const { status, out } = replay("--list", folder);
    expect([status, out]).toEqual([0, expect.stringContaining("a.jsonl  demo")]);
    expect(out).toContain("c.jsonl");
  });
});

describe("which log", () => {
  test("an id is looked for in --dir: by file name, else by header", () => {
    expect(replay("demo", "--dir", GOLDEN, "--verify").out).toBe("verified 4/4 requests\n");
    expect(replay("20260814-090000-a1b2c3").out).toContain("log version 1");
  });

  test("an id that several logs have is not guessed", () => {
    const { status, err } = replay("20260814-090000-d4e5f6");
    expect([status, err]).toEqual([
      1,
      expect.stringMatching(/several logs have the id .*changes\.jsonl, .*tools\.jsonl/),
    ]);
  });

  test.each([
    [["none"], "there is no file none, and no log with that id in ."],
    [["v3"], "v3 is a folder: --list v3 shows its logs"],
    [["empty.jsonl"], "the log is empty"],
    [["log-v2-bad-middle.jsonl"], "line 3: not a JSON object"],
    [["log-v2-bad-middle.jsonl", "--verify"], "line 3: not a JSON object"],
    [[], "name a log"],
    [["a", "b"], "one log at a time"],
    [["a", "--turn", "0"], "--turn"],
    [["a", "--request", "x"], "--request"],
    [["a", "--against", "b"], "--against goes with --request"],
    [["a", "--url", "ftp://x"], "--url must be an http or https URL"],
    [["a", "--url", "http://u:p@x"], "must not hold credentials"],
    [["a", "--frobnicate"], "--frobnicate"],
  ])("%j is an error on standard error alone", (args, message) => {
    const { status, out, err } = replay(...args);
    expect([status, out]).toEqual([1, ""]);
    expect(err).toMatch(/^replay-session: /);
    expect(err).toContain(message);
    expect(err).not.toContain("    at ");
  });

  test("a pipe is read too, and nothing of it stays", () => {
    const command = [
      "-c",
      'cat "$0" | "$1" "$2" /dev/stdin --verify',
      join(GOLDEN, "demo.jsonl"),
      process.execPath,
      SCRIPT,
    ];
    const { status, stdout, stderr } = spawnSync("sh", command, { encoding: "utf8", env: environment() });
    expect([status, stdout, stderr]).toEqual([0, "verified 4/4 requests\n", ""]);
    expect(readdirSync(join(folder, "tmp"))).toEqual([]);
  });
});

test("--out writes what its owner alone can read, whole or not at all", () => {
  const file = join(folder, "made", "here", "replay.json");
  expect(replay("v3/demo.jsonl", "--json", "--out", file)).toEqual({ status: 0, out: "", err: "" });
  expect(JSON.parse(readFileSync(file, "utf8")).turns).toHaveLength(4);
  const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);
  expect([mode(file), mode(join(folder, "made")), mode(join(folder, "made", "here"))]).toEqual(["600", "700", "700"]);
  chmodSync(file, 0o644);
  expect(replay("v3/demo.jsonl", "--turn", "99", "--out", file).status).toBe(1);
  expect(JSON.parse(readFileSync(file, "utf8")).turns).toHaveLength(4);
  expect(replay("v3/demo.jsonl", "--out", file).status).toBe(0);
  expect([mode(file), readdirSync(join(folder, "made", "here"))]).toEqual(["600", ["replay.json"]]);
});

test("the log is only read", () => {
  const before = readFileSync(join(GOLDEN, "demo.jsonl"));
  const { mtimeMs } = statSync(join(GOLDEN, "demo.jsonl"));
  for (const args of [[], ["--verify"], ["--json"], ["--turn", "1"], ["--request", "1"]])
    replay("v3/demo.jsonl", ...args);
  expect(readFileSync(join(GOLDEN, "demo.jsonl")).equals(before)).toBe(true);
  expect(statSync(join(GOLDEN, "demo.jsonl")).mtimeMs).toBe(mtimeMs);
});

test("--help has every option and the formulas", () => {
  const { status, out, err } = replay("--help");
  expect([status, err]).toEqual([0, ""]);
  for (const name of ["list", "turn", "request", "against", "verify", "json", "dir", "url", "out", "help"]) {
    expect(out).toContain(`--${name}`);
  }
  expect(out).toContain("Formulas");
});

describe("--url", () => {
  let server: Server;
  let url: string;
  const seen: [string | undefined, string | undefined][] = [];

  beforeAll(async () => {
    server = createServer((request, response) => {
      seen.push([request.url, request.headers.authorization]);
      if (request.url === "/base/v1/sessions/demo/log") response.end(golden("demo"));
      else if (request.url?.startsWith("/base/v1/sessions?limit=200")) {
        const item = { id: "s1", agent: "a", model: "m", state: "idle", messageCount: 2, createdAt: "t" };
        const more = request.url.endsWith("&after=c%2F1");
        response.end(JSON.stringify({ items: [{ ...item, id: more ? "s2" : "s1" }], next: more ? null : "c/1" }));
      } else if (request.url === "/base/v1/sessions/away/log") response.writeHead(302, { location: "/base/x" }).end();
      else {
        response.writeHead(404, { "content-type": "application/problem+json" });
        response.end(JSON.stringify({ code: "not_found", detail: "No such session." }));
      }
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/base/`;
  });
  afterAll(() => new Promise((done) => server.close(done)));

  test("reads a session of the service with the key, and leaves nothing", async () => {
    seen.length = 0;
    const { status, out, err } = await replayAsync(["demo", "--url", url, "--verify"], { SELFSAME_KEY: "k1" });
    expect([status, out, err]).toEqual([0, "verified 4/4 requests\n", ""]);
    expect(seen).toEqual([["/base/v1/sessions/demo/log", "Bearer k1"]]);
    expect(readdirSync(join(folder, "tmp"))).toEqual([]);
  });

  test("lists its sessions, all pages", async () => {
    const { status, out } = await replayAsync(["--list", "--url", url, "--json"], {});
    expect([status, JSON.parse(out).map(({ id }: { id: string }) => id)]).toEqual([0, ["s1", "s2"]]);
  });

  test.each([
    ["none", /answered 404 not_found No such session\.$/m],
    ["away", /cannot be reached/],
  ])("%s is an error", async (id, message) => {
    const { status, out, err } = await replayAsync([id, "--url", url], { SELFSAME_KEY: "k1" });
    expect([status, out]).toEqual([1, ""]);
    expect(err).toMatch(message);
    expect(err).not.toContain("k1");
  });
});
