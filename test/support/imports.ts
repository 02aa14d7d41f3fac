/** Exports and imports of sessions under test, and what their tables hold. */
import { runInDurableObject } from "cloudflare:test";
import { createHash } from "node:crypto";
import { expect } from "vitest";
import { ExportReader } from "../../src/replay/export-reader.ts";
import type { SessionResource } from "../../src/session/resources.ts";
import { call, stub } from "./session.ts";

export const NDJSON = { "content-type": "application/x-ndjson" };

export function importLog(text: string) {
  return call<SessionResource & { code?: string; detail?: string }>("POST", "/v1/imports", text, NDJSON);
}

export async function exportLog(id: string, version = ""): Promise<string> {
  const reply = await call("GET", `/v1/sessions/${id}/log${version}`);
  expect(reply.status, reply.text).toBe(200);
  return reply.text;
}

export async function erase(id: string): Promise<void> {
  expect((await call("DELETE", `/v1/sessions/${id}`)).status).toBe(204);
}

/** Erases the session and makes it again from its export, which it gives. */
export async function reimport(id: string): Promise<string> {
  const text = await exportLog(id);
  expectToldByEntries(text);
  await erase(id);
  const made = await importLog(text);
  expect(made.status, made.text).toBe(201);
  return text;
}

/** What the state says for certain, the entries say too. */
function expectToldByEntries(text: string): void {
  const reader = new ExportReader();
  for (const line of text.trimEnd().split("\n")) expect(reader.push(line)).toEqual({ ok: true, value: undefined });
  const read = reader.finish("");
  if (!read.ok) throw new Error(read.error.detail);
  expect(read.value.log.session()!.openingTurn, "the turn that opens the epoch").toBe(read.value.state!.openingTurn);
}

/** The lines of an export with some changed, and an `end` line that fits them. */
export function resealed(text: string, change: (lines: string[]) => string[]): string {
  const lines = change(text.trimEnd().split("\n").slice(0, -1));
  const body = lines.map((line) => `${line}\n`).join("");
  const sha256 = createHash("sha256").update(body).digest("hex");
  return `${body}${JSON.stringify({ type: "end", entries: lines.length, sha256 })}\n`;
}

/** Every row of the session's tables, but what is its object's own: when it was born, what its alarm has to do. */
export function tables(id: string): Promise<Record<string, unknown[]>> {
  return runInDurableObject(stub(id), (_, { storage }) => {
    const all = (sql: string) => storage.sql.exec(sql).toArray();
    return {
      session: all("SELECT * FROM session").map(({ birth, erasures, ended_through, ...row }) => row),
      entries: all("SELECT * FROM entries ORDER BY seq"),
      messages: all("SELECT * FROM messages ORDER BY seq"),
      turns: all("SELECT * FROM turns ORDER BY n").map(({ input, temporary, ...row }) => row),
      keys: all("SELECT * FROM keys ORDER BY key"),
      prepared: all("SELECT * FROM prepared ORDER BY epoch, family, level"),
      blobs: all("SELECT * FROM blobs WHERE key NOT LIKE 'input:%' ORDER BY key, part"),
    };
  });
}
