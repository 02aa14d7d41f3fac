/** API keys: signed tokens that carry tenant, scopes and expiry. Nothing about them is stored. */
import { z } from "zod";
import { type SigningKeys, signToken, verifyToken } from "./signing.ts";

export const SCOPES = ["agents:write", "sessions:write", "sessions:read", "prompts:read", "log:read"] as const;
export type Scope = (typeof SCOPES)[number];

export const TENANT = /^[a-z0-9][a-z0-9-]{0,62}$/;

const AUDIENCE = "selfsame";

const KeyClaims = z.object({ tenant: z.string().regex(TENANT), scopes: z.array(z.enum(SCOPES)) });
export type KeyClaims = z.infer<typeof KeyClaims>;

/** Signs a key that expires `ttlSeconds` after `now` (milliseconds). */
export function mintKey(keys: SigningKeys, claims: KeyClaims, ttlSeconds: number, now: number): Promise<string> {
  return signToken(keys, { audience: AUDIENCE, claims, now, expires: Math.floor(now / 1000) + ttlSeconds });
}

/** What a key says that is ours and unaltered, also after its time; `null` for everything else. */
export async function verifyKey(
  token: string,
  keys: SigningKeys,
  now: number,
): Promise<{ claims: KeyClaims; expired: boolean } | null> {
  const verified = await verifyToken(token, keys, AUDIENCE, now);
  const claims = KeyClaims.safeParse(verified?.payload).data;
  return verified === null || claims === undefined ? null : { claims, expired: verified.expired };
}
