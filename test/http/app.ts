/** The router with bindings of the test's choosing, for what the service under `exports.default` cannot show. */
import { env } from "cloudflare:workers";
import { createApp } from "../../src/http/app.ts";
import type { Env } from "../../src/http/env.ts";
import { type KeyClaims, mintKey, SCOPES } from "../../src/http/keys.ts";
import { parseSigningKeys } from "../../src/http/signing.ts";

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  code: string | undefined;
}

/** Bindings of the service with some set, or taken away by `undefined`. */
export function bindings(change: { [Name in keyof Env]?: Env[Name] | undefined }): Env {
  return Object.fromEntries(Object.entries({ ...env, ...change }).filter(([, value]) => value !== undefined)) as never;
}

const app = createApp();

export async function fetchWith(bound: Env, url: string, init: RequestInit = {}): Promise<Answer> {
  const response = await app.fetch(new Request(new URL(url, "http://localhost"), init), bound);
  const text = await response.text();
  const code = response.headers.get("content-type") === "application/problem+json" ? JSON.parse(text).code : undefined;
  return { status: response.status, headers: response.headers, text, code };
}

/** A base64url signing key of one repeated byte. */
export function signingKey(byte: number): string {
  return Buffer.alloc(32, byte).toString("base64url");
}

/** A key as `mint-key` makes it; by default for everything, for an hour. */
export function mint(key: string, claims: Partial<KeyClaims> = {}, ttlSeconds = 3600, now = Date.now()) {
  return mintKey(parseSigningKeys(key), { tenant: "shop", scopes: [...SCOPES], ...claims }, ttlSeconds, now);
}

export function bearer(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}`, "content-type": "application/json" };
}

export const SHOP = "https://shop.example";

/** What a page at `origin` sends with a session's token. */
export function page(token: string, origin: string | undefined = SHOP): Record<string, string> {
  return { ...bearer(token), ...(origin === undefined ? {} : { origin }) };
}

/** Every route that asks for a scope, once a scope. `{id}` and `{turn}` need not exist: scopes come first. */
export const ROUTES = [
  ["GET", "/v1/agents", "sessions:read"],
  ["GET", "/v1/agents/{name}", "sessions:read"],
  ["PUT", "/v1/agents/{name}", "agents:write"],
  ["DELETE", "/v1/agents/{name}", "agents:write"],
  ["GET", "/v1/sessions", "sessions:read"],
  ["POST", "/v1/sessions", "sessions:write"],
  ["GET", "/v1/sessions/{id}", "sessions:read"],
  ["PATCH", "/v1/sessions/{id}", "sessions:write"],
  ["DELETE", "/v1/sessions/{id}", "sessions:write"],
  ["POST", "/v1/sessions/{id}/refresh", "sessions:write"],
  ["POST", "/v1/sessions/{id}/clear", "sessions:write"],
  ["PUT", "/v1/sessions/{id}/history", "sessions:write"],
  ["GET", "/v1/sessions/{id}/history", "prompts:read"],
  ["GET", "/v1/sessions/{id}/messages", "sessions:read"],
  ["GET", "/v1/sessions/{id}/context", "sessions:read"],
  ["GET", "/v1/sessions/{id}/contract", "prompts:read"],
  ["GET", "/v1/sessions/{id}/prompts", "prompts:read"],
  ["GET", "/v1/sessions/{id}/prompts/{sha256}", "prompts:read"],
  ["GET", "/v1/sessions/{id}/log", "log:read"],
  ["POST", "/v1/imports", "sessions:write"],
  ["POST", "/v1/imports", "log:read"],
  ["POST", "/v1/sessions/{id}/tokens", "sessions:write"],
  ["POST", "/v1/sessions/{id}/turns", "sessions:write"],
  ["GET", "/v1/sessions/{id}/turns", "sessions:read"],
  ["GET", "/v1/sessions/{id}/turns/{turn}", "sessions:read"],
  ["GET", "/v1/sessions/{id}/turns/{turn}/stream", "sessions:read"],
  ["POST", "/v1/sessions/{id}/turns/{turn}/cancel", "sessions:write"],
  ["POST", "/v1/sessions/{id}/turns/{turn}/retry", "sessions:write"],
  ["POST", "/v1/sessions/{id}/turns/{turn}/abandon", "sessions:write"],
  ["GET", "/v1/sessions/{id}/turns/{turn}/requests/{attempt}/{call}", "prompts:read"],
  ["GET", "/v1/sessions/{id}/turns/{turn}/requests/{attempt}/{call}", "log:read"],
] as const;

/** A route's path with its parameters filled in. */
export function fill(path: string, values: { id?: string; turn?: string; sha256?: string } = {}): string {
  const { id = "nobody", turn = "turn_1", sha256 = "0".repeat(64) } = values;
  return path
    .replace("{id}", id)
    .replace("{turn}", turn)
    .replace("{sha256}", sha256)
    .replace("{name}", "nobody")
    .replace("{attempt}", "1")
    .replace("{call}", "1");
}

/** A body that a route accepts: what it needs besides `{}`. */
export function bodyFor(method: string, path: string): { body?: string } {
  if (method === "GET" || method === "DELETE") return {};
  if (path.endsWith("/turns")) return { body: '{"input":"hello"}' };
  if (path.endsWith("/history")) return { body: '{"messages":[]}' };
  return { body: path.endsWith("/tokens") ? JSON.stringify({ origins: [SHOP] }) : "{}" };
}

/** The content type that a route asks for. */
export function typeFor(path: string): Record<string, string> {
  return { "content-type": path === "/v1/imports" ? "application/x-ndjson" : "application/json" };
}
