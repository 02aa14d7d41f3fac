/**
 * Session tokens: for a page that talks to one session. Signed like keys, for another audience, and bound to a tenant, a
 * session, exact origins and a short time. Nothing about them is stored, so none can be taken back before its time.
 */
import { decodeJwt } from "jose";
import { z } from "zod";
import { TENANT } from "./keys.ts";
import { type SigningKeys, signToken, verifyToken } from "./signing.ts";

const AUDIENCE = "selfsame/session";

const TokenClaims = z.object({
  tenant: z.string().regex(TENANT),
  session: z.string(),
  origins: z.array(z.string()).min(1),
});
export type TokenClaims = z.infer<typeof TokenClaims>;

/** Signs a token that expires `ttlSeconds` after `now` (milliseconds); `expiresAt` is in milliseconds too. */
export async function mintSessionToken(
  keys: SigningKeys,
  claims: TokenClaims,
  ttlSeconds: number,
  now: number,
): Promise<{ token: string; expiresAt: number }> {
  const expires = Math.floor(now / 1000) + ttlSeconds;
  return { token: await signToken(keys, { audience: AUDIENCE, claims, now, expires }), expiresAt: expires * 1000 };
}

/** What a session token says that is ours and unaltered, also after its time; `null` for everything else. */
export async function verifySessionToken(
  token: string,
  keys: SigningKeys,
  now: number,
): Promise<{ claims: TokenClaims; expired: boolean } | null> {
  const verified = await verifyToken(token, keys, AUDIENCE, now);
  const claims = TokenClaims.safeParse(verified?.payload).data;
  return verified === null || claims === undefined ? null : { claims, expired: verified.expired };
}

/** Whether a bearer says that it is a session token. Nothing of it is verified: good for refusing it, never for trust. */
export function claimsToBeSessionToken(bearer: string): boolean {
  try {
    return [decodeJwt(bearer).aud].flat().includes(AUDIENCE);
  } catch {
    return false;
  }
}

/** Whether a text is an http(s) origin exactly as browsers send it: no path, no default port, no wildcard, lower case. */
export function isOrigin(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.origin === text && !text.includes("*");
}
