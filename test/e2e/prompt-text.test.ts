/** Failure class: a damaged prompt text is used, or replaced by one that nobody was ever sent. */
import { expect, test } from "vitest";
import { MODEL, useBench } from "./support/bench.ts";
import { requestsWith, systemOf } from "./support/requests.ts";
import { bucketKeys, change, damageObject, deleteObject, rows, sessionFile } from "./support/storage.ts";
import { eventually } from "./support/wait.ts";

const IDS = ["altered", "deleted", "altered-everywhere", "deleted-everywhere"] as const;

const prompts = new Map<string, string>();

const bench = useBench(async (open) => {
  await open.start();
  const { api, workspace } = open;
  for (const id of IDS) {
    // A text of its own: sessions with the same one share the object in R2.
    await api.create({ agent: "concierge", id, model: MODEL, instructions: { base: `Base of ${id}.` } });
    await api.turn(id, `${id} first`);
    prompts.set(id, (await api.session(id)).promptSha256);
    await eventually("stored in R2", 10_000, async () => (await api.session(id)).snapshot === "stored");
  }
  await open.kill();
  for (const id of IDS) {
    const file = sessionFile(workspace.state, id);
    const key = `prompt:${prompts.get(id)}`;
    const sql = id.startsWith("altered")
      ? "UPDATE blobs SET text = text || ' Obey.' WHERE key = ?"
      : "DELETE FROM blobs WHERE key = ?";
    expect(change(file, sql, key)).toBe(1);
  }
  const inR2 = (id: string) => `tenants/dev/prompts/sha256/${prompts.get(id)}`;
  expect(bucketKeys(workspace.state)).toEqual(expect.arrayContaining(IDS.map(inR2)));
  damageObject(workspace.state, inR2("altered-everywhere"));
  deleteObject(workspace.state, inR2("deleted-everywhere"));
  // Today's sources would compile to something else: whoever rebuilds shows itself.
  workspace.edit("prompts/agents/concierge/AGENTS.md", (text) => `${text}\nEdited while stopped.\n`);
  await open.start();
});

test.each(["altered", "deleted"])("%s in SQLite: healed from R2, the same bytes are sent", async (id) => {
  const { api, provider, state } = bench();
  const turn = await api.turn(id, `${id} second`);
  expect([turn.status, turn.body.promptSha256], JSON.stringify(turn.body)).toEqual([200, prompts.get(id)]);
  const [first, second] = requestsWith(provider, `${id} first`);
  expect(systemOf(second!)).toBe(systemOf(first!));
  const notices = (await api.log(id)).filter(({ type, code }) => type === "notice" && code === "prompt_healed");
  expect(notices.length).toBe(1);
  const [row] = rows(sessionFile(state, id), "SELECT text FROM blobs WHERE key = ?", `prompt:${prompts.get(id)}`);
  expect(row?.text).toBe(systemOf(first!));
});

test.each(["altered-everywhere", "deleted-everywhere"])("%s: 503, nothing sent, nothing rebuilt", async (id) => {
  const { api, provider, state } = bench();
  const file = sessionFile(state, id);
  const read = () => [
    rows(file, "SELECT * FROM blobs"),
    rows(file, "SELECT * FROM turns"),
    rows(file, "SELECT * FROM messages"),
  ];
  const [sent, stored, before] = [provider.requests.length, read(), await api.session(id)];
  for (let attempt = 1; attempt <= 2; attempt++) {
    const turn = await api.turn(id, `${id} second`);
    expect([turn.status, turn.body.code], JSON.stringify(turn.body)).toEqual([503, "prompt_unavailable"]);
  }
  expect(provider.requests.length).toBe(sent);
  expect(read()).toEqual(stored);
  expect(await api.session(id)).toEqual(before);
  expect((await api.messages(id)).length).toBe(2);
});
