/** Failure class: an error code that nobody ever gets, or that comes with another status, title or no word of why. */
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { bundle } from "#prompts";
import { ERRORS, type ErrorCode } from "../../src/errors.ts";
import { MAX_QUEUED_TURNS, PROVIDER_SILENT_MS } from "../../src/limits.ts";
import type { ScriptEntry } from "../support/provider-script.ts";
import {
  call,
  crash,
  createSession,
  ended,
  post,
  provider,
  type Reply,
  release,
  say,
  script,
  sql,
  type stub,
  wireModel,
} from "../support/session.ts";
import { retimeTimers } from "../support/timers.ts";
import { bearer, bindings, fetchWith, mint, signingKey } from "./app.ts";
import { expectProblem } from "./problem.ts";

type AnyReply = Reply<unknown>;

interface Case {
  /** Makes the service answer with the code. */
  produce(): Promise<AnyReply>;
  /** What `detail` must say of this very case. */
  says: RegExp;
}

const concierge = bundle.agents.concierge!;

afterEach(() => {
  vi.restoreAllMocks();
  bundle.agents.concierge = concierge;
});

const quiet = () => vi.spyOn(console, "error").mockImplementation(() => undefined);
const key = { "idempotency-key": "k" };

/** A call with bindings of the test's choosing. */
async function callWith(
  change: Parameters<typeof bindings>[0],
  path: string,
  init: RequestInit = {},
): Promise<AnyReply> {
  const { status, headers, text } = await fetchWith(bindings(change), path, init);
  return { status, headers, text, json: JSON.parse(text) };
}

/** A turn that meets a provider of that behaviour. */
async function meets(entry: ScriptEntry): Promise<AnyReply> {
  const { id } = await createSession();
  await script(entry);
  return say(id, "hello");
}

/** A turn that the provider does not answer, under way. */
async function running(): Promise<string> {
  const { id } = await createSession();
  await script({ kind: "hang" });
  await say(id, "hangs", {}, { ...key, prefer: "respond-async" });
  await provider.waitFor({ model: wireModel() });
  return id;
}

/** A session whose turn is `unknown`. */
async function interrupted(): Promise<string> {
  const id = await running();
  await crash();
  expect((await ended(id, "turn_1")).state).toBe("unknown");
  return id;
}

const CASES: Partial<Record<ErrorCode, Case>> = {
  invalid_request: {
    says: /unknown agent "nobody"/,
    produce: () => call("POST", "/v1/sessions", { agent: "nobody" }),
  },
  invalid_identity: {
    says: /^identity\.id: /,
    produce: () => call("POST", "/v1/sessions", { agent: "concierge", identity: { id: "é" } }),
  },
  unsupported_version: {
    says: /^identity\.version: /,
    produce: () => call("POST", "/v1/sessions", { agent: "concierge", identity: { version: 2, id: "a" } }),
  },
  hash_mismatch: {
    says: /fingerprint/,
    produce: async () => {
      const { id } = await createSession();
      const prompt = { base: "Base.", developer: "", fingerprint: `sha256:${"0".repeat(64)}`, prepared: [] };
      const metadata = { selfsame: { version: 1, identity: { id: "agent-1" }, prompt } };
      return call("PUT", `/v1/sessions/${id}/history`, { messages: [{ role: "user", content: "hello", metadata }] });
    },
  },
  unauthenticated: { says: /Bearer/, produce: () => callWith({ SIGNING_KEY: signingKey(1) }, "/v1/agents") },
  insufficient_scope: {
    says: /sessions:read/,
    produce: async () => {
      const token = await mint(signingKey(1), { scopes: ["log:read"] });
      return callWith({ SIGNING_KEY: signingKey(1) }, "/v1/agents", { headers: bearer(token) });
    },
  },
  not_found: { says: /No such session/, produce: () => call("GET", "/v1/sessions/nobody") },
  identity_conflict: {
    says: /another identity/,
    produce: async () => {
      const { id } = await createSession();
      return say(id, "hello", { identity: { id: "somebody-else" } });
    },
  },
  session_exists: {
    says: /concierge/,
    produce: async () => {
      const { id } = await createSession();
      return call("POST", "/v1/sessions", { agent: "standup", id });
    },
  },
  busy: { says: /running/, produce: async () => say(await running(), "no", { onBusy: "reject" }) },
  wrong_state: {
    says: /completed/,
    produce: async () => {
      const { id } = await createSession();
      await say(id, "hello");
      return call("POST", `/v1/sessions/${id}/turns/turn_1/cancel`, {});
    },
  },
  outcome_unknown: {
    says: /interrupted.*retry.*abandon/,
    produce: async () => say(await interrupted(), "hangs", {}, key),
  },
  too_large: {
    says: /^metadata: .* bytes/,
    produce: () => call("POST", "/v1/sessions", { agent: "concierge", metadata: { m: "x".repeat(16 * 1024) } }),
  },
  unsupported_media_type: {
    says: /application\/json/,
    produce: () => call("POST", "/v1/sessions", "agent=concierge", { "content-type": "text/plain" }),
  },
  idempotency_mismatch: {
    says: /another body; the raw bytes/,
    produce: async () => {
      const { id } = await createSession();
      await say(id, "one", {}, key);
      return say(id, "two", {}, key);
    },
  },
  queue_full: {
    says: new RegExp(`${MAX_QUEUED_TURNS} turns`),
    produce: async () => {
      const id = await running();
      for (let i = 0; i < MAX_QUEUED_TURNS; i++) await post(id, `waits ${i}`);
      const reply = await say(id, "one too many");
      await release();
      await ended(id, `turn_${MAX_QUEUED_TURNS + 1}`);
      return reply;
    },
  },
  internal: {
    says: /^Something went wrong here/,
    produce: () => {
      quiet();
      const broken = { get: () => Promise.reject(new TypeError("a bug")) } as unknown as ReturnType<typeof stub>;
      vi.spyOn(env.SESSIONS, "getByName").mockReturnValueOnce(broken);
      return call("GET", "/v1/sessions/any");
    },
  },
  hook_failed: {
    says: /could not be reached/,
    produce: () => {
      const hook = { url: "http://127.0.0.1:1/", required: true, timeoutMs: 300 };
      bundle.agents.concierge = { ...concierge, config: { ...concierge.config, hook } };
      return call("POST", "/v1/sessions", { agent: "concierge" });
    },
  },
  provider_rejected: { says: /It answered 401/, produce: () => meets({ kind: "status", status: 401 }) },
  provider_unavailable: {
    says: /It answered 503/,
    // It says to come back in an hour, so that nothing is worth another try.
    produce: () => meets({ kind: "status", status: 503, headers: { "retry-after": "3600" }, times: 9 }),
  },
  incomplete: { says: /cut off/, produce: () => meets({ kind: "cut", after: "half of" }) },
  context_overflow: {
    says: /It answered 400/,
    produce: () =>
      meets({ kind: "status", status: 400, body: { error: { message: "long", code: "context_length_exceeded" } } }),
  },
  abandoned: {
    says: /abandoned/,
    produce: async () => {
      const id = await interrupted();
      await call("POST", `/v1/sessions/${id}/turns/turn_1/abandon`, {});
      return say(id, "hangs", {}, key);
    },
  },
  storage_unavailable: {
    says: /Idempotency-Key/,
    produce: async () => {
      quiet();
      const { id } = await createSession();
      await sql(id, "CREATE TRIGGER broken BEFORE INSERT ON turns BEGIN SELECT RAISE(ABORT, 'injected'); END");
      const reply = await say(id, "hello");
      await sql(id, "DROP TRIGGER broken");
      expect(reply.headers.get("retry-after")).toBe("1");
      return reply;
    },
  },
  prompt_unavailable: {
    says: /cannot be read now/,
    produce: async () => {
      const { id } = await createSession();
      await sql(id, "UPDATE blobs SET text = 'damaged' WHERE key LIKE 'prompt:%'");
      await crash();
      vi.spyOn(env.SNAPSHOTS, "get").mockRejectedValue(new Error("R2 is away"));
      return say(id, "hello");
    },
  },
  not_configured: {
    says: /SIGNING_KEY/,
    produce: () => callWith({ DEV_PRINCIPAL: undefined, SIGNING_KEY: undefined }, "/v1/agents"),
  },
  provider_timeout: {
    says: /silent for too long/,
    produce: async () => {
      retimeTimers((ms) => (ms === PROVIDER_SILENT_MS ? 50 : ms));
      return meets({ kind: "hang-before-headers" });
    },
  },
};

/** Codes that no single call here can produce, and where else they come from. */
const ELSEWHERE: Partial<Record<ErrorCode, string>> = {
  rate_limited: "the platform's rate limiter answers: test/http/rates.test.ts",
  thread_lost: "a later issue: threads that a provider holds",
  tool_loop_limit: "a later issue: tools",
};

describe("every code", () => {
  it("is produced here, or it is said why it cannot be", () => {
    const known = Object.keys(ERRORS).sort();
    expect([...Object.keys(CASES), ...Object.keys(ELSEWHERE)].sort()).toEqual(known);
  });

  it.each(Object.entries(CASES) as [ErrorCode, Case][])("%s", { timeout: 30_000 }, async (code, { produce, says }) => {
    const reply = await produce();
    vi.restoreAllMocks();
    expectProblem(reply, code);
    expect((reply.json as { detail: string }).detail).toMatch(says);
  });
});

describe("not_configured", () => {
  it("is also what a provider address that is none comes to", async () => {
    const { id } = await createSession();
    const { OPENAI_BASE_URL } = env;
    Object.assign(env, { OPENAI_BASE_URL: "not a url" });
    await crash();
    const reply = await say(id, "hello");
    Object.assign(env, { OPENAI_BASE_URL });
    expectProblem(reply, "not_configured");
    expect(reply.text).toContain("OPENAI_BASE_URL");
  });
});
