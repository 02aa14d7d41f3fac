/** Failure class: a session that was exported and imported is another one, or goes on as another one. */
import { describe, expect, it } from "vitest";
import { exportLog, importLog, reimport, tables } from "../support/imports.ts";
import { call, createSession, provider, say, wireModel } from "../support/session.ts";

describe("an imported session", () => {
  it("has the log and the tables it had", async () => {
    const { id } = await createSession({ project: { name: "p", rules: "r" }, metadata: { a: 1 } });
    await say(id, "hello", {}, { "idempotency-key": "k" });
    await provider.script({ kind: "cut", after: "half", match: { model: wireModel() } });
    await say(id, "fails");
    await say(id, "again");
    const before = await tables(id);
    const text = await reimport(id);
    expect(await tables(id)).toEqual(before);
    expect(await exportLog(id)).toBe(text);
    expect((await importLog(text)).json.code).toBe("session_exists");
    expect((await call("GET", `/v1/sessions/${id}`)).status).toBe(200);
  });
});
