import { describe, expect, it, vi } from "vitest";
import { bundle } from "#prompts";
import { MAX_QUEUED_TURNS } from "../../src/limits.ts";
import type { TurnResource } from "../../src/session/resources.ts";
import { countRows } from "../support/rows.ts";
import {
  call,
  createSession,
  ended,
  getSession,
  getTurn,
  messages,
  post,
  provider,
  release,
  say,
  sentMessages,
  wireModel,
} from "../support/session.ts";

describe("admission", () => {
  it("makes the order of admission the order of the transcript: the second request contains the first answer", async () => {
    const { id } = await createSession();
    const [first, second] = await Promise.all([say(id, "first"), say(id, "second")]);
    const [, sent] = await sentMessages();
    expect(sent!.slice(1).map(({ content }) => content.split("\n\n").at(-1))).toEqual([
      "first",
      first.json.output!.text,
      "second",
    ]);
    expect((await messages(id)).map(({ text }) => text)).toEqual([
      "first",
      first.json.output!.text,
      "second",
      second.json.output!.text,
    ]);
  });

  it("runs twenty at once strictly one after the other", async () => {
    const { id } = await createSession();
    await Promise.all(Array.from({ length: 20 }, (_, i) => say(id, `m${i}`)));
    expect((await getSession(id)).messageCount).toBe(40);
    const sent = await sentMessages();
    expect(sent.map((list) => list.length)).toEqual(Array.from({ length: 20 }, (_, i) => 2 + 2 * i));
    const inputs = (await messages(id)).filter(({ role }) => role === "user").map(({ text }) => text);
    expect(inputs).toEqual(Array.from({ length: 20 }, (_, i) => `m${i}`));
  });

  it("refuses when asked to reject on a busy session, and says 429 when the queue is full", async () => {
    const { id } = await createSession();
    await provider.script({ kind: "hang", match: { model: wireModel() } });
    const running = await post(id, "hangs");
    expect((await say(id, "no", { onBusy: "reject" })).text).toContain('"code":"busy"');
    for (let i = 0; i < MAX_QUEUED_TURNS; i++) await post(id, `waits ${i}`);
    const full = await say(id, "one too many");
    expect([full.status, (full.json as unknown as { code: string }).code]).toEqual([429, "queue_full"]);
    await release();
    expect((await ended(id, running.id)).state).toBe("completed");
    expect((await ended(id, `turn_${MAX_QUEUED_TURNS + 1}`)).state).toBe("completed");
  });

  it("is idempotent over key and raw body, also in parallel", async () => {
    const { id } = await createSession();
    const key = { "idempotency-key": "k-1" };
    const replies = await Promise.all(Array.from({ length: 5 }, () => say(id, "once", {}, key)));
    expect(new Set(replies.map(({ json }) => json.id)).size).toBe(1);
    expect(replies.filter(({ headers }) => headers.get("idempotency-replayed") === "true")).toHaveLength(4);
    expect((await say(id, "another body", {}, key)).status).toBe(422);
    expect(await provider.requests({ model: wireModel() })).toHaveLength(1);
  });
});

describe("answers", () => {
  it("come when the turn has ended, or at once when asked, and later on request", async () => {
    const { id } = await createSession();
    await provider.script({ kind: "hang", after: "so ", rest: "far", match: { model: wireModel() } });
    const reply = await say(id, "hello", {}, { prefer: "respond-async" });
    expect(reply.status).toBe(202);
    expect(reply.headers.get("location")).toBe(`/v1/sessions/${id}/turns/turn_1`);
    expect(reply.json.state).toBe("dispatched");
    expect(await getSession(id)).toMatchObject({ state: "running", activeTurn: "turn_1", messageCount: 0 });
    await release();
    const turn = await ended(id, "turn_1");
    expect(turn).toMatchObject({ state: "completed", output: { text: "so far" }, attempt: 1 });
    expect(turn.usage).toMatchObject({ input: expect.any(Number), output: expect.any(Number) });
    expect(await getSession(id)).toMatchObject({ state: "idle", activeTurn: null, messageCount: 2 });
  });

  it("carry the hash of the bytes really sent", async () => {
    const { id } = await createSession();
    const turn = (await say(id, "hello")).json;
    const [request] = await provider.requests({ model: wireModel() });
    const digest = await crypto.subtle.digest("SHA-256", request!.body as Uint8Array<ArrayBuffer>);
    expect(turn.requests).toEqual([
      { attempt: 1, call: 1, seq: 8, bytes: request!.body.byteLength, bodySha256: Buffer.from(digest).toString("hex") },
    ]);
  });

  it.each(["wake", "resume", "unread", "idle", "deferred_continuation"])(
    "go to the event %s without an input",
    async (event) => {
      const { id } = await createSession();
      const reply = await call<TurnResource>("POST", `/v1/sessions/${id}/turns`, { event });
      expect(reply.json).toMatchObject({ state: "completed", event });
      const [[, user]] = (await sentMessages()) as [[unknown, { content: string }]];
      expect(user.content).toContain("[runtime]");
      expect((await messages(id)).map(({ role }) => role)).toEqual(["assistant"]);
    },
  );
});

describe("a session's turns", () => {
  it("are listed newest first, page by page", async () => {
    const { id } = await createSession();
    for (const text of ["one", "two", "three"]) await say(id, text);
    const list = (query: string) =>
      call<{ items: TurnResource[]; next: string | null }>("GET", `/v1/sessions/${id}/turns${query}`);
    const first = (await list("?limit=2")).json;
    expect(first.items.map((turn) => turn.id)).toEqual(["turn_3", "turn_2"]);
    const rest = (await list(`?limit=2&after=${first.next}`)).json;
    expect(rest.items.map((turn) => turn.id)).toEqual(["turn_1"]);
    expect(rest.next).toBeNull();
    expect(rest.items[0]).toEqual(await getTurn(id, "turn_1"));
  });

  it("give the exact body of each request, rebuilt, also after the history moved on", async () => {
    const { id } = await createSession();
    await say(id, "one", { temporary: [{ text: "for now" }] });
    await provider.script({ kind: "cut", after: "x", match: { model: wireModel() } });
    await say(id, "two");
    await call("POST", `/v1/sessions/${id}/refresh`, { project: { name: "p", rules: "More rules." } });
    await say(id, "three");
    const received = await provider.requests({ model: wireModel() });
    for (const [index, request] of received.entries()) {
      const reply = await call("GET", `/v1/sessions/${id}/turns/turn_${index + 1}/requests/1/1`);
      expect(reply.text).toBe(new TextDecoder().decode(request.body));
    }
    for (const path of ["1/2", "2/1", "0/0"]) {
      expect((await call("GET", `/v1/sessions/${id}/turns/turn_1/requests/${path}`)).status).toBe(404);
    }
  });
});

describe("temporary instructions", () => {
  it("go before the input of their turn, and nowhere else", async () => {
    const { id } = await createSession();
    await say(id, "one", { temporary: [{ text: "CANARY" }] });
    await say(id, "two");
    const [first, second] = await sentMessages();
    expect(first!.map(({ role }) => role)).toEqual(["system", "system", "user"]);
    expect(first![1]!.content).toBe("CANARY");
    expect(JSON.stringify(second)).not.toContain("CANARY");
    expect(JSON.stringify(await messages(id))).not.toContain("CANARY");
    const contract = await call("GET", `/v1/sessions/${id}/contract`);
    expect(contract.text).not.toContain("CANARY");
  });
});

describe("cancel", () => {
  it("of a running turn keeps what was said, marked, and closes the provider's connection", async () => {
    const { id } = await createSession();
    await provider.script({ kind: "hang", after: "I was saying", match: { model: wireModel() } });
    const turn = await post(id, "talk");
    await vi.waitFor(async () => expect((await getTurn(id, turn.id)).state).toBe("streaming"));
    const cancelled = await call<TurnResource>("POST", `/v1/sessions/${id}/turns/${turn.id}/cancel`, {});
    expect(cancelled.json).toMatchObject({ state: "cancelled", output: null });
    await provider.waitFor({ model: wireModel(), closed: true });
    expect((await call("POST", `/v1/sessions/${id}/turns/${turn.id}/cancel`, {})).status).toBe(200);
    await say(id, "go on");
    const [, next] = await sentMessages();
    const tail = next!.slice(2).map(({ role, content }) => [role, content.slice(0, 30)]);
    expect(tail).toEqual([
      ["assistant", "I was saying"],
      ["user", "[runtime] The person stopped y"],
      ["user", "go on"],
    ]);
    expect((await getSession(id)).messageCount).toBe(3);
  });

  it("of a waiting turn leaves nothing of it to later requests", async () => {
    const { id } = await createSession();
    await provider.script({ kind: "hang", match: { model: wireModel() } });
    const running = await post(id, "hangs");
    const waiting = await post(id, "never mind");
    expect((await call("POST", `/v1/sessions/${id}/turns/${waiting.id}/cancel`, {})).json.state).toBe("cancelled");
    await release();
    await ended(id, running.id);
    await say(id, "next");
    expect(JSON.stringify(await sentMessages())).not.toContain("never mind");
    expect((await getSession(id)).messageCount).toBe(4);
  });

  it("of a completed turn is refused", async () => {
    const { id } = await createSession();
    const turn = (await say(id, "hello")).json;
    const reply = await call("POST", `/v1/sessions/${id}/turns/${turn.id}/cancel`, {});
    expect([reply.status, reply.json.code]).toEqual([409, "wrong_state"]);
  });
});

describe("while a turn runs", () => {
  it("clear is refused as busy and changes nothing", async () => {
    const { id } = await createSession();
    await provider.script({ kind: "hang", match: { model: wireModel() } });
    const turn = await post(id, "hangs");
    const reply = await call("POST", `/v1/sessions/${id}/clear`, {});
    expect([reply.status, reply.json.code]).toEqual([409, "busy"]);
    await release();
    expect((await ended(id, turn.id)).state).toBe("completed");
  });
});

describe("long inputs that wait", () => {
  it("are not read to look at the session", async () => {
    const { id } = await createSession();
    await provider.script({ kind: "hang", match: { model: wireModel() } });
    const first = await post(id, "hangs");
    const text = '"\0'.repeat(500_000);
    const waiting = [await post(id, text), await post(id, text)];
    const read = await countRows(id, () => getSession(id));
    expect(read.read).toBeLessThanOrEqual(4);
    await release();
    await ended(id, first.id);
    for (const turn of waiting) expect((await ended(id, turn.id)).state).toBe("completed");
    const inputs = (await messages(id)).filter(({ role }) => role === "user").map((message) => message.text);
    expect(inputs.slice(1)).toEqual([text, text]);
  });
});

describe("a bug while a waiting turn is prepared", () => {
  it("ends that turn, once, and not the session", async () => {
    const { id } = await createSession();
    await provider.script({ kind: "hang", match: { model: wireModel() } });
    const first = await post(id, "first");
    const body = { event: "wake" };
    const wake = await call<TurnResource>("POST", `/v1/sessions/${id}/turns`, body, { prefer: "respond-async" });
    const text = bundle.events.wake;
    try {
      bundle.events.wake = undefined as unknown as string;
      await release();
      expect(await ended(id, wake.json.id)).toMatchObject({ state: "failed", reason: "internal", attempt: 1 });
    } finally {
      bundle.events.wake = text;
    }
    expect((await ended(id, first.id)).state).toBe("completed");
    expect((await say(id, "next")).status).toBe(200);
  });
});
