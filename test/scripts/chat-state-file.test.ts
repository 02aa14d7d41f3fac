/** The list of used sessions on disk. */
import { spawn } from "node:child_process";
import { appendFile, chmod, mkdir, mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readUses, recordUse, statePath } from "../../scripts/chat/state-file.ts";

const URL_A = "http://127.0.0.1:8787";
const use = (id: string, minute: number, url = URL_A) => ({
  url,
  id,
  agent: "concierge",
  at: new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString(),
});

let home: string;
let path: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "selfsame-chat-"));
  path = statePath({ XDG_STATE_HOME: home });
});
afterEach(() => rm(home, { recursive: true }));

const ids = async (url = URL_A) => (await readUses(path, url)).map(({ id }) => id);

describe("the state file", () => {
  it("lies in the XDG state directory; a relative one is ignored", () => {
    expect(statePath({ XDG_STATE_HOME: "/x" }, "/h")).toBe("/x/selfsame/chat.jsonl");
    expect(statePath({}, "/h")).toBe("/h/.local/state/selfsame/chat.jsonl");
    expect(statePath({ XDG_STATE_HOME: "x" }, "/h")).toBe("/h/.local/state/selfsame/chat.jsonl");
  });

  it("is nobody else's to read, even if it was before", async () => {
    await mkdir(dirname(path), { mode: 0o755 });
    await appendFile(path, "", { mode: 0o644 });
    await chmod(path, 0o644);
    await recordUse(path, use("a", 1));
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(dirname(path))).mode & 0o777).toBe(0o700);
  });

  it("gives the newest use first, each session once, per service", async () => {
    await recordUse(path, use("a", 1));
    await recordUse(path, use("b", 2));
    await recordUse(path, use("other", 3, "http://127.0.0.1:9999"));
    await recordUse(path, use("a", 4));
    expect(await ids()).toEqual(["a", "b"]);
    expect(await ids("http://127.0.0.1:9999")).toEqual(["other"]);
  });

  it("writes four fields and no more", async () => {
    const more = { ...use("a", 1), text: "private", key: "secret" };
    await recordUse(path, more);
    expect(Object.keys(JSON.parse(await readFile(path, "utf8")))).toEqual(["url", "id", "agent", "at"]);
  });

  it("is empty when it is missing", async () => {
    expect(await ids()).toEqual([]);
  });

  it("skips a torn last line, and does not lose the one written after it", async () => {
    await recordUse(path, use("a", 1));
    await appendFile(path, '{"url":"http://127.0.0.1:8787","id":"to');
    expect(await ids()).toEqual(["a"]);
    await recordUse(path, use("b", 2));
    expect(await ids()).toEqual(["b", "a"]);
  });

  it("skips lines that are not ours", async () => {
    await recordUse(path, use("a", 1));
    await appendFile(path, 'null\n[]\n{"id":7}\n{"url":"http://127.0.0.1:8787","id":"x","agent":"y"}\n\n');
    expect(await ids()).toEqual(["a"]);
  });

  it("reads only the end of a long file", async () => {
    await recordUse(path, use("old", 1));
    await appendFile(path, `${JSON.stringify(use("filler", 2))}\n`.repeat(4000));
    await recordUse(path, use("new", 3));
    expect(await ids()).toEqual(["new", "filler"]);
  });

  it("keeps every line of several processes that append at once", async () => {
    const script = `
      import { recordUse } from ${JSON.stringify(resolve("scripts/chat/state-file.ts"))};
      const [path, name] = process.argv.slice(1);
      for (let i = 0; i < 25; i += 1) {
        await recordUse(path, { url: "u", id: name + i, agent: "a", at: new Date().toISOString() });
      }`;
    const node = resolve("node_modules/.bin/node");
    const codes = await Promise.all(
      ["p", "q", "r", "s"].map(
        (name) =>
          new Promise((done, fail) => {
            const args = ["--input-type=module", "-e", script, path, name];
            spawn(node, args, { stdio: "inherit" }).on("error", fail).on("exit", done);
          }),
      ),
    );
    expect(codes).toEqual([0, 0, 0, 0]);
    expect((await ids("u")).toSorted()).toHaveLength(100);
  });
});
