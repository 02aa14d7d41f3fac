/** A directory that does not answer: whoever asks it is told so in time. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { DirectoryObject } from "../../src/directory/object.ts";
import { DIRECTORY_WAIT_MS } from "../../src/limits.ts";
import { call } from "../support/session.ts";
import { retimeTimers } from "../support/timers.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

const AGENT = { files: { "IDENTITY.md": "You are {{identity.name}}." } };

describe("a directory that is silent", () => {
  it.each([
    ["list", "GET", "/v1/sessions", undefined],
    ["agents", "GET", "/v1/agents", undefined],
    ["agent", "GET", "/v1/agents/concierge", undefined],
    ["publish", "PUT", "/v1/agents/helper", AGENT],
    ["unpublish", "DELETE", "/v1/agents/helper", undefined],
    ["agent", "POST", "/v1/sessions", { agent: "concierge" }],
  ] as const)("when it is asked to %s for %s %s is a 503 that says to come again", async (method, verb, path, body) => {
    const silence = Promise.withResolvers<never>();
    vi.spyOn(DirectoryObject.prototype, method).mockImplementation((() => silence.promise) as never);
    retimeTimers((ms) => (ms === DIRECTORY_WAIT_MS ? 20 : ms));
    const reply = await call<{ code: string }>(verb, path, body);
    silence.reject(new Error("too late"));
    expect([reply.status, reply.json.code, reply.headers.get("retry-after")]).toEqual([
      503,
      "storage_unavailable",
      "1",
    ]);
  });
});
