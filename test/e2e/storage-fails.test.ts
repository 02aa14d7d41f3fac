/** Failure class: storage that fails for a while costs a turn, tells the provider, or leaves half of something behind. */
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { MODEL, useBench } from "./support/bench.ts";
import { messagesOf, requestsWith } from "./support/requests.ts";
import { breakBucket, bucketKeys, lock, rows, sessionFile } from "./support/storage.ts";
import { eventually } from "./support/wait.ts";

const bench = useBench(async (open) => {
  await open.start();
});

async function newSession(id: string, instructions?: object): Promise<string> {
  const { api, state } = bench();
  const made = await api.create({ agent: "concierge", id, model: MODEL, ...(instructions ? { instructions } : {}) });
  expect([made.status, made.body.messageCount]).toEqual([201, 0]);
  return sessionFile(state, id);
}

/** A turn that must be refused without a trace, while `id`'s file is in the state that `heal` ends. */
async function expectRefused(id: string, heal: () => void): Promise<void> {
  const { api, provider } = bench();
  const sent = provider.requests.length;
  const refused = await api.turn(id, "must not be sent").finally(heal);
  expect([refused.status, refused.body.code], JSON.stringify(refused.body)).toEqual([503, "storage_unavailable"]);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(refused.headers.get("content-type")).toBe("application/problem+json");
  expect(provider.requests.length).toBe(sent);
}

const faults: [string, (file: string) => () => void][] = [
  ["locked by another writer", lock],
  [
    "refusing the request entry",
    (file) => {
      const database = new DatabaseSync(file);
      database.exec(
        "CREATE TRIGGER injected BEFORE INSERT ON entries WHEN NEW.type = 'request' BEGIN SELECT RAISE(ABORT, 'injected'); END",
      );
      return () => {
        database.exec("DROP TRIGGER injected");
        database.close();
      };
    },
  ],
  [
    "refusing the turn's row",
    (file) => {
      const database = new DatabaseSync(file);
      database.exec("CREATE TRIGGER injected BEFORE INSERT ON turns BEGIN SELECT RAISE(ABORT, 'injected'); END");
      return () => {
        database.exec("DROP TRIGGER injected");
        database.close();
      };
    },
  ],
];

test.each(faults)(
  "the session's file %s: 503, nothing sent, nothing accepted, and well again afterwards",
  async (name, inject) => {
    const { api, provider } = bench();
    const id = name.replaceAll(/[^a-z]+/g, "-");
    const file = await newSession(id);
    expect((await api.turn(id, "before")).status).toBe(200);
    const [log, resource] = [await api.rawLog(id), await api.session(id)];

    await expectRefused(id, inject(file));

    expect(await api.rawLog(id)).toBe(log);
    expect({ ...(await api.session(id)), snapshot: null }).toEqual({ ...resource, snapshot: null });
    const after = await api.turn(id, `after ${name}`);
    expect([after.status, after.body.id, after.body.attempt], JSON.stringify(after.body)).toEqual([200, "turn_2", 1]);
    expect((await api.session(id)).messageCount).toBe(4);
    const sent = messagesOf(requestsWith(provider, `after ${name}`)[0]!)
      .map(({ content }) => content)
      .join("\n");
    expect(sent).toContain("before");
    expect(sent).not.toContain("must not be sent");
  },
);

test("the same after a cold start: the first turn after it is refused whole", async () => {
  const id = "cold";
  const file = await newSession(id);
  await bench().restart();
  const { api } = bench();
  await expectRefused(id, faults[1]![1](file));
  expect(await api.messages(id)).toEqual([]);
  expect((await api.turn(id, "well again")).status).toBe(200);
});

test("R2 away: sessions and turns go on, the snapshot follows by itself", async () => {
  const { api, state } = bench();
  await newSession("primer"); // makes sure that the bucket has its tables
  await eventually(
    "a first snapshot is stored",
    10_000,
    async () => (await api.session("primer")).snapshot === "stored",
  );
  const keys = bucketKeys(state);
  const heal = breakBucket(state);
  try {
    const file = await newSession("away", { base: "Text that is stored nowhere yet." });
    expect((await api.turn("away", "goes on")).status).toBe(200);
    await eventually(
      "an upload has failed",
      10_000,
      () => Number(rows(file, "SELECT tries FROM due WHERE job = 'outbox'")[0]?.tries) > 0,
    );
    expect(await api.session("away")).toMatchObject({ snapshot: "pending", messageCount: 2 });
    expect((await api.turn("away", "and on")).status).toBe(200);
  } finally {
    heal();
  }
  const file = sessionFile(state, "away");
  // Nobody calls: the file is read instead.
  await eventually("the outbox is empty", 30_000, () => rows(file, "SELECT * FROM outbox").length === 0);
  const session = await api.session("away");
  expect(session).toMatchObject({ snapshot: "stored", messageCount: 4 });
  const added = bucketKeys(state)
    .filter((key) => !keys.includes(key))
    .sort();
  const [fingerprint, prompt] = [session.fingerprint.slice("sha256:".length), session.promptSha256];
  expect(added).toEqual([`tenants/dev/contracts/sha256/${fingerprint}`, `tenants/dev/prompts/sha256/${prompt}`]);
});
