/** /resume: by id and by choice; a failed one leaves the session as it was. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Api } from "../../scripts/chat/api.ts";
import { parallel, readMessages } from "../../scripts/chat/open-session.ts";
import { recordUse } from "../../scripts/chat/state-file.ts";
import { ScriptedChat } from "./support/scripted-chat.ts";

let t: ScriptedChat;
beforeEach(async () => {
  t = await new ScriptedChat().start();
});
afterEach(() => t.stop());

describe("/resume", () => {
  it.each([
    ["an unknown id", "nowhere", "Not found: There is no such session. (not_found, HTTP 404)"],
    ["a service in trouble", "ill", "Storage is not available: Try again. (storage_unavailable, HTTP 503)"],
  ])("of %s says why and stays", async (_, id, reason) => {
    const title = "Storage is not available";
    t.stub.refuse.set("/v1/sessions/ill", { status: 503, code: "storage_unavailable", title, detail: "Try again." });
    const before = t.chat.session;
    expect(await t.run(`/resume ${id}`)).toContain(reason);
    expect(t.chat.session).toBe(before);
    expect(await t.run("hello")).toContain("You said: hello");
    expect(t.stub.requests("POST", /turns$/).at(-1)?.path).toContain(before.id);
  });

  it("shows the last six messages and gives the arrows the user's own", async () => {
    await t.run("one");
    await t.run("two");
    await t.run("three");
    await t.run("four");
    const { id } = t.chat.session;
    await t.run("/new");
    expect(t.chat.session.id).not.toBe(id);
    const shown = await t.run(`/resume ${id}`);
    expect(t.chat.session.id).toBe(id);
    expect(shown.match(/^you /gm)).toHaveLength(3);
    expect(shown.match(/^Wren {2}You said/gm)).toHaveLength(3);
    expect(shown).not.toContain("You said: one");
    expect(t.input.history).toEqual(["four", "three", "two", "one"]);
  });

  it("goes on when only the messages cannot be read", async () => {
    t.stub
      .addSession("old")
      .messages.push({ seq: 1, id: "m", role: "user", text: "x", status: "complete", ts: "", turn: "t" });
    const title = "Storage is not available";
    t.stub.refuse.set("/v1/sessions/old/messages", { status: 503, code: "storage_unavailable", title, detail: "" });
    expect(await t.run("/resume old")).toContain("Earlier messages cannot be shown: Storage is not available");
    expect(t.chat.session.id).toBe("old");
  });

  it("lets one choose with keys, leaves out what is gone and this session", async () => {
    for (const [i, id] of ["first", "gone", "last", t.chat.session.id].entries()) {
      if (id !== "gone") t.stub.addSession(id);
      await recordUse(t.chat.statePath, { url: t.stub.url, id, agent: "concierge", at: `2026-01-01T00:00:0${i}Z` });
    }
    t.input.keys = ["\x1b[B", "\r"];
    const shown = await t.run("/resume");
    expect(shown).toContain("1 session no longer there");
    const list = shown.slice(0, shown.indexOf("↑ ↓"));
    expect(list).toMatch(/1 {2}concierge +Wren +0 messages +\d+ days ago +last\n {2}2 {2}.*first\n/);
    expect(t.chat.session.id).toBe("first");
    t.input.keys = ["\x1b", ...["q"]];
    expect(await t.run("/resume")).toContain("still in the same session");
    expect(t.chat.session.id).toBe("first");
  });

  it("lets one choose among the service's sessions, also those used elsewhere", async () => {
    t.stub.canList = true;
    expect(await t.run("/resume")).toContain("There is no other session");
    for (const id of ["first", "second"]) t.stub.addSession(id);
    t.input.keys = ["\x1b[B", "\r"];
    const shown = await t.run("/resume");
    expect(shown).toMatch(/1 {2}concierge +Wren +0 messages +\d+ days ago +second\n {2}2 {2}.*first\n/);
    expect(shown.slice(0, shown.indexOf("↑ ↓"))).not.toContain("session-1");
    expect(t.chat.session.id).toBe("first");
  });

  it("shows sessions used here as they are, where the list is behind", async () => {
    t.stub.canList = true;
    await t.run("hello");
    const { id } = t.chat.session;
    t.stub.behind.set(id, { messageCount: 0 });
    t.stub.addSession("elsewhere");
    t.stub.behind.set("elsewhere", { messageCount: 7 });
    t.stub.addSession("gone");
    await recordUse(t.chat.statePath, { url: t.stub.url, id: "gone", agent: "concierge", at: "2026-01-01T00:00:00Z" });
    t.stub.refuse.set("/v1/sessions/gone", { status: 404, code: "not_found", title: "Not found", detail: "" });
    await t.run("/new");
    t.input.keys = ["q"];
    const shown = await t.run("/resume");
    expect(shown).toMatch(new RegExp(`2 messages .*${id}`));
    expect(shown).toMatch(/7 messages .*elsewhere/);
    expect(shown).not.toContain("gone");
  });

  it.each([
    [403, "insufficient_scope"],
    [503, "storage_unavailable"],
    [404, "not_found"],
  ])("falls back on what was used here when the list is refused (%i)", async (status, code) => {
    t.stub.canList = true;
    t.stub.refuse.set("/v1/sessions", { status, code, title: "No list", detail: "" });
    t.stub.addSession("used");
    t.stub.addSession("not used");
    await recordUse(t.chat.statePath, { url: t.stub.url, id: "used", agent: "concierge", at: "2026-01-01T00:00:00Z" });
    t.input.keys = ["\r"];
    const shown = await t.run("/resume");
    expect(shown).not.toContain("not used");
    expect(t.chat.session.id).toBe("used");
  });

  it("takes a number where there are no keys", async () => {
    await t.open(false);
    t.stub.addSession("other");
    await recordUse(t.chat.statePath, { url: t.stub.url, id: "other", agent: "concierge", at: "2026-01-01T00:00:00Z" });
    t.input.lines = ["7", "1"];
    expect(await t.run("/resume")).toContain("There is no session number 7");
    expect(t.chat.session.id).not.toBe("other");
    await t.run("/resume");
    expect(t.chat.session.id).toBe("other");
  });

  it("says so when there is nothing to choose from", async () => {
    expect(await t.run("/resume")).toContain("No other session of this service was used here");
  });

  it("does not end when the service is gone", async () => {
    await recordUse(t.chat.statePath, { url: t.stub.url, id: "x", agent: "a", at: "2026-01-01T00:00:00Z" });
    await t.stub.stop();
    expect(await t.run("/resume")).toContain("the connection is refused");
  });
});

describe("reading many", () => {
  it("reads all pages of messages", async () => {
    const { messages } = t.stub.addSession("long");
    for (let seq = 1; seq <= 450; seq += 1) {
      messages.push({ seq, id: `m${seq}`, role: "user", text: "x", status: "complete", ts: "", turn: "t" });
    }
    const { items, cut } = await readMessages(new Api(t.stub.url), "long");
    expect([items.length, items.at(-1)?.seq, cut]).toEqual([450, 450, false]);
  });

  it("runs at most so many at a time, and keeps the order", async () => {
    let running = 0;
    let most = 0;
    const results = await parallel([5, 1, 4, 2, 3, 0], 4, async (n) => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, n));
      running -= 1;
      return n * 10;
    });
    expect(results).toEqual([50, 10, 40, 20, 30, 0]);
    expect(most).toBe(4);
  });
});
