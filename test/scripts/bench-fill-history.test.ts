/** Failure class: the bench's long history is not what the service would have written. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { messageText } from "../../scripts/lib/bench/conversation.ts";
import { countRows, fillHistory } from "../../scripts/lib/bench/fill-history.ts";
import { MIGRATIONS } from "../../src/session/schema.ts";

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "selfsame-fill-"));
  file = join(folder, "session.sqlite");
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A session with two turns, in the product's own tables. */
function twoTurns(state = "completed"): void {
  change((database) => {
    for (const migration of MIGRATIONS) database.exec(migration);
    const session = database
      .prepare("PRAGMA table_info(session)")
      .all()
      .map((column) => String(column.name));
    const values: Record<string, string | number> = { id: 1, message_count: 4, ended_through: 2 };
    const marks = session.map(() => "?").join(", ");
    database.prepare(`INSERT INTO session VALUES (${marks})`).run(...session.map((name) => values[name] ?? "0"));
    const message = database.prepare("INSERT INTO messages VALUES (?, 'ts', ?, ?, ?)");
    const entry = database.prepare("INSERT INTO entries VALUES (?, 'ts', ?, ?, '{}')");
    const turn = database.prepare(
      "INSERT INTO turns (n, state, event, attempt, temporary, user_seq, answer_seq, requests, created_at) VALUES (?, ?, 'message', 1, '[]', ?, ?, ?, 'ts')",
    );
    for (const n of [1, 2]) {
      const seq = 5 * n;
      const body = (at: number, role: string) =>
        JSON.stringify({ id: `msg_${at}`, role, content: [{ type: "reference", text: "long" }], status: "complete" });
      entry.run(seq, "turn", n);
      message.run(seq + 1, n, "user", body(seq + 1, "user"));
      entry.run(seq + 2, "request", n);
      message.run(seq + 3, n, "assistant", body(seq + 3, "assistant"));
      entry.run(seq + 4, "turn", n);
      turn.run(n, state, seq + 1, seq + 3, JSON.stringify([{ call: 1, seq: seq + 2 }]));
    }
  });
}

function change<T>(work: (database: DatabaseSync) => T): T {
  const database = new DatabaseSync(file);
  try {
    return work(database);
  } finally {
    database.close();
  }
}

const all = (sql: string) =>
  change((database) =>
    database
      .prepare(sql)
      .all()
      .map((row) => ({ ...row })),
  );

test("the history is as long as asked, and the log goes on without a hole", () => {
  twoTurns();
  fillHistory(file, 100);
  expect(countRows(file)).toMatchObject({ messages: 100, turns: 50, entries: 150 });
  const seqs = all("SELECT seq FROM entries UNION ALL SELECT seq FROM messages ORDER BY seq").map(({ seq }) => seq);
  expect(seqs).toEqual(Array.from({ length: 250 }, (_, index) => 5 + index));
  expect(all("SELECT message_count, ended_through FROM session")).toEqual([{ message_count: 100, ended_through: 50 }]);
});

test("user and assistant take turns with texts of their own, under the ids of their places", () => {
  twoTurns();
  fillHistory(file, 10);
  const copies = all("SELECT seq, turn, role, body FROM messages WHERE turn > 2 ORDER BY seq");
  expect(copies.map(({ turn, role }) => [turn, role])).toEqual(
    [3, 4, 5].flatMap((n) => ["user", "assistant"].map((role) => [n, role])),
  );
  for (const [index, { seq, body }] of copies.entries()) {
    const { id, content } = JSON.parse(String(body)) as { id: string; content: unknown };
    expect(id).toBe(`msg_${seq}`);
    expect(content).toEqual([{ type: "text", text: messageText(4 + index) }]);
  }
});

test("a copied turn points at its own messages and its own request", () => {
  twoTurns();
  fillHistory(file, 12);
  for (const { n, user_seq, answer_seq, requests } of all("SELECT * FROM turns")) {
    expect(all(`SELECT turn, role FROM messages WHERE seq IN (${user_seq}, ${answer_seq}) ORDER BY seq`)).toEqual([
      { turn: n, role: "user" },
      { turn: n, role: "assistant" },
    ]);
    const [request] = JSON.parse(String(requests)) as { seq: number }[];
    expect(all(`SELECT turn, type FROM entries WHERE seq = ${request!.seq}`)).toEqual([{ turn: n, type: "request" }]);
  }
});

test("a turn that did not complete is not copied, and nothing is changed", () => {
  twoTurns("failed");
  expect(() => fillHistory(file, 100)).toThrow("its last turn is not a completed one");
  expect(countRows(file)).toMatchObject({ messages: 4, turns: 2 });
});

test("texts are the same on every run, and of different lengths", () => {
  const texts = Array.from({ length: 200 }, (_, index) => messageText(index));
  expect(texts).toEqual(Array.from({ length: 200 }, (_, index) => messageText(index)));
  expect(messageText(0)).toMatchInlineSnapshot(
    `"0: order the already maybe small was with thanks already where when exchange."`,
  );
  const average = (parity: number) => {
    const chosen = texts.filter((_, index) => index % 2 === parity);
    return chosen.reduce((sum, text) => sum + text.length, 0) / chosen.length;
  };
  expect(average(0)).toBeGreaterThan(40);
  expect(average(1)).toBeGreaterThan(2 * average(0));
});
