import { afterEach, describe, expect, it } from "vitest";
import { MIGRATIONS } from "../../src/session/schema.ts";
import { call, crash, createSession, say, sql } from "../support/session.ts";

const shipped = MIGRATIONS.length;
const list = MIGRATIONS as string[];

afterEach(() => {
  list.length = shipped;
});

describe("a session of an older release", () => {
  it("is brought up to date when a newer one opens it, once, and goes on", async () => {
    const { id } = await createSession();
    await say(id, "one");
    list.push("ALTER TABLE session ADD COLUMN added_later TEXT");
    await crash();
    expect((await say(id, "two")).json).toMatchObject({ state: "completed", id: "turn_2" });
    expect(await sql(id, "SELECT version FROM schema")).toEqual([{ version: shipped + 1 }]);
    expect(await sql(id, "SELECT added_later FROM session")).toEqual([{ added_later: null }]);
    await crash();
    expect((await say(id, "three")).status).toBe(200);
  });

  it("is not half migrated: a migration that fails leaves it as it was, and answers 503", async () => {
    const { id } = await createSession();
    list.push("CREATE TABLE added (x); CREATE TABLE session (x)");
    await crash();
    expect((await call("GET", `/v1/sessions/${id}`)).status).toBe(503);
    expect(await sql(id, "SELECT version FROM schema")).toEqual([{ version: shipped }]);
    expect(await sql(id, "SELECT name FROM sqlite_schema WHERE name = 'added'")).toEqual([]);
    list.length = shipped;
    await crash();
    expect((await say(id, "one")).status).toBe(200);
  });
});

describe("a session of a newer release", () => {
  it("keeps its version when an older one opens it", async () => {
    const { id } = await createSession();
    await sql(id, "UPDATE schema SET version = 99");
    await crash();
    expect((await say(id, "one")).status).toBe(200);
    expect(await sql(id, "SELECT version FROM schema")).toEqual([{ version: 99 }]);
  });
});
