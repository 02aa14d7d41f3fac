/** Failure class: a session's token sees the prompt, or something that tells of it; or its turns do not work. */
import { beforeEach, describe, expect, it } from "vitest";
import { bundle } from "#prompts";
import type { SessionResource, TurnResource } from "../../src/session/resources.ts";
import {
  call,
  crash,
  createSession,
  ended,
  getTurn,
  logLines,
  provider,
  say,
  script,
  wireModel,
} from "../support/session.ts";
import { page, SHOP } from "./app.ts";
import { faults, resolve, type Schema } from "./json-schema.ts";

/** Texts that nobody without the scope may get, each in its own place. */
const TEXTS = {
  developer: "canary-7f3a-developer",
  rules: "canary-7f3a-rules",
  temporary: "canary-7f3a-temporary",
  // concierge's own, of the first turn
  reference: bundle.agents.concierge!.files["REFERENCE.md"]!.split("\n").find((line) => line.length > 40)!,
  base: bundle.platform.persistence.split("\n").find((line) => line.length > 40)!,
};

let session: SessionResource;
let at: string;
let headers: Record<string, string>;

beforeEach(async () => {
  session = await createSession({
    instructions: { developer: TEXTS.developer },
    project: { name: "p", rules: TEXTS.rules },
  });
  at = `/v1/sessions/${session.id}`;
  const made = await call<{ token: string }>("POST", `${at}/tokens`, { origins: [SHOP] });
  headers = page(made.json.token);
});

const ask = <T = TurnResource>(method: string, path: string, body?: unknown, more = {}) =>
  call<T & { code?: string; turn?: TurnResource }>(method, at + path, body, { ...headers, ...more });

/** A turn of the token whose outcome is not known. */
async function unknownTurn(input: string): Promise<string> {
  await script({ kind: "hang", after: "half" });
  const { id } = (await ask("POST", "/turns", { input }, { prefer: "respond-async" })).json;
  await provider.waitFor({ model: wireModel(), text: input });
  await crash();
  expect((await ended(session.id, id)).state).toBe("unknown");
  return id;
}

describe("the turns of a token", () => {
  it("are answered, followed, cancelled and tried again", async () => {
    expect((await ask("POST", "/turns", { input: "one" })).json).toMatchObject({ state: "completed", id: "turn_1" });
    const key = { "idempotency-key": "k1" };
    expect((await ask("POST", "/turns", { input: "two" }, key)).status).toBe(200);
    const again = await ask("POST", "/turns", { input: "two" }, key);
    expect([again.json.id, again.headers.get("idempotency-replayed")]).toEqual(["turn_2", "true"]);
    const stream = await ask("GET", "/turns/turn_2/stream");
    expect(stream.text).toMatch(/^event: turn\n[\s\S]*event: end\n/);

    await script({ kind: "cut", after: "half of" });
    expect((await ask("POST", "/turns", { input: "three" })).json).toMatchObject({ code: "incomplete" });
    expect((await ask("POST", "/turns/turn_3/retry", {})).json).toMatchObject({ state: "completed", attempt: 2 });

    await script({ kind: "hang", after: "so far" });
    const running = await ask("POST", "/turns", { input: "four" }, { prefer: "respond-async" });
    expect(running.status).toBe(202);
    await provider.waitFor({ model: wireModel(), text: "four" });
    expect((await ask("POST", `/turns/${running.json.id}/cancel`, {})).json).toMatchObject({ state: "cancelled" });
    expect((await ask<SessionResource>("GET", "")).json).toMatchObject({ id: session.id, messageCount: 7 });
  });

  it("are one with those of a key: a turn sent again under its key is the same", async () => {
    const key = { "idempotency-key": "k" };
    await say(session.id, "hello", {}, key);
    const again = await ask("POST", "/turns", { input: "hello" }, key);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
  });
});

describe("what a token sees", () => {
  const HIDDEN = ["fingerprint", "promptSha256", "requests", "drift", "agentVersion", "bodySha256"];

  it("is the resource and its turns without what speaks of prompts, also in a problem", async () => {
    const own = (await ask<SessionResource>("GET", "")).json;
    const { agentVersion, fingerprint, promptSha256, drift, ...rest } = (await call<SessionResource>("GET", at)).json;
    expect(own).toEqual(rest);
    expect([agentVersion, fingerprint, promptSha256, drift]).not.toContain(undefined); // a key sees them

    await script({ kind: "status", status: 400 });
    const failed = (await ask("POST", "/turns", { input: "x" })).json;
    const whole = await getTurn(session.id, failed.turn!.id);
    const { fingerprint: f, promptSha256: p, requests, ...shown } = whole;
    expect(failed.turn).toEqual(shown);
    expect([f, p, requests.length]).toEqual([fingerprint, promptSha256, 1]);

    const unknown = await unknownTurn("lost");
    const replayed = (await ask("GET", `/turns/${unknown}`)).json;
    expect(Object.keys(replayed)).toEqual(Object.keys(shown));
  });

  it("holds no canary: not in the resource, messages, turns, streams and errors", async () => {
    // What there is to see: reference text in the first turn, temporary text, a turn of each kind of end.
    await say(session.id, "by key", { temporary: [{ text: TEXTS.temporary }] });
    await call("POST", `${at}/turns`, { event: "wake" });
    const answers = [await ask("POST", "/turns", { input: "one" })];
    answers.push(await ask("POST", "/turns", { input: "two" }, { accept: "text/event-stream" }));
    await script({ kind: "status", status: 400 });
    answers.push(await ask("POST", "/turns", { input: "three" }));
    answers.push(await ask("POST", "/turns/turn_5/retry", {}, { accept: "text/event-stream" }));
    answers.push(await ask("POST", `/turns/${await unknownTurn("four")}/retry`, {}));
    for (const n of [1, 2, 3, 4, 5, 6]) {
      answers.push(await ask("GET", `/turns/turn_${n}`), await ask("GET", `/turns/turn_${n}/stream`));
      answers.push(await ask("POST", `/turns/turn_${n}/cancel`, {}));
    }
    answers.push(await ask("GET", ""), await ask("GET", "/messages"), await ask("GET", "/turns/turn_9"));
    for (const path of ["/log", "/contract", "/prompts", "/context", "/turns", `/prompts/${session.promptSha256}`]) {
      const refused = await ask("GET", path);
      expect(refused.status).toBe(403);
      answers.push(refused);
    }
    answers.push(await ask("POST", "/turns", { input: "x", event: "wake" }), await ask("POST", "/turns", { input: 7 }));

    const log = (await call("GET", `${at}/log`)).text;
    const hashes = (await logLines(session.id)).flatMap((line) =>
      "bodySha256" in line && typeof line.bodySha256 === "string" ? [line.bodySha256] : [],
    );
    const canaries = [...Object.values(TEXTS), session.fingerprint, session.promptSha256, session.agentVersion];
    for (const canary of canaries.slice(0, -1)) expect(log).toContain(JSON.stringify(canary).slice(1, -1)); // planted
    expect(hashes.length).toBeGreaterThan(4);
    for (const { status, text, headers: sent } of answers) {
      expect(status, "an answer to the call itself").not.toBe(429);
      const whole = text + JSON.stringify([...sent]);
      for (const canary of [...canaries, ...hashes]) expect(whole).not.toContain(JSON.stringify(canary).slice(1, -1));
      for (const name of HIDDEN) expect(whole).not.toContain(`"${name}"`);
    }
  });

  it("is what the description says: schemas of its own, in which a hidden field is a fault", async () => {
    const description = (await call<Schema>("GET", "/openapi.json")).json;
    const check = (name: string, value: unknown) =>
      faults(description, resolve(description, `#/components/schemas/${name}`), value);
    const turn = (await ask("POST", "/turns", { input: "hello" })).json;
    expect(check("TokenSession", (await ask("GET", "")).json)).toEqual([]);
    expect(check("TokenTurn", turn)).toEqual([]);
    expect(check("TokenTurn", { ...turn, fingerprint: "x" })).toEqual(["$.fingerprint: not described"]);
    expect(check("TokenSession", (await call("GET", at)).json)).toHaveLength(4);
  });
});
