/** API keys: signed tokens (JWT, HS256) that carry tenant, scopes and expiry. Nothing about them is stored. */
import { errors, jwtVerify, SignJWT } from "jose";
import { z } from "zod";

export const SCOPES = ["agents:write", "sessions:write", "sessions:read", "prompts:read", "log:read"] as const;
export type Scope = (typeof SCOPES)[number];

export const TENANT = /^[a-z0-9][a-z0-9-]{0,62}$/;

const AUDIENCE = "selfsame";
const ALGORITHM = "HS256";

/** RFC 7518 §3.2: a key for HS256 has at least 256 bits. */
const MIN_KEY_BYTES = 32;

/** Signing keys by `kid`; the first one signs, all of them verify. */
export type SigningKeys = ReadonlyMap<string, Uint8Array>;

const KeyClaims = z.object({ tenant: z.string().regex(TENANT), scopes: z.array(z.enum(SCOPES)) });
export type KeyClaims = z.infer<typeof KeyClaims>;

/** Reads `SIGNING_KEY`: one base64url key (kid `default`), or JSON `{"kid":"key", …}`. Throws with what is wrong. */
export function parseSigningKeys(text: string): SigningKeys {
  const named: unknown = text.trimStart().startsWith("{") ? JSON.parse(text) : { default: text.trim() };
  const entries = Object.entries(z.record(z.string(), z.string()).parse(named)).map(
    ([kid, key]): [string, Uint8Array] => {
      const bytes = new Uint8Array(Buffer.from(key, "base64url"));
      if (bytes.byteLength < MIN_KEY_BYTES)
        throw new Error(`SIGNING_KEY ${kid}: at least ${MIN_KEY_BYTES} bytes, base64url`);
      return [kid, bytes];
    },
  );
  if (entries.length === 0) throw new Error("SIGNING_KEY names no key");
  return new Map(entries);
}

/** Signs a key that expires `ttlSeconds` after `now` (milliseconds). */
export async function mintKey(keys: SigningKeys, claims: KeyClaims, ttlSeconds: number, now: number): Promise<string> {
  const [kid, key] = [...keys][0]!;
  const issued = Math.floor(now / 1000);
  return new SignJWT({ ...claims })
    .setProtectedHeader({ alg: ALGORITHM, kid, typ: "JWT" })
    .setAudience(AUDIENCE)
    .setIssuedAt(issued)
    .setExpirationTime(issued + ttlSeconds)
    .sign(key);
}

/** The claims of a key that is ours, unaltered and not expired; `null` for everything else. */
export async function verifyKey(token: string, keys: SigningKeys, now: number): Promise<KeyClaims | null> {
  try {
    const { payload } = await jwtVerify(
      token,
      ({ kid }) => {
        const key = keys.get(kid ?? "");
        if (key === undefined) throw new errors.JWKSNoMatchingKey();
        return key;
      },
      { algorithms: [ALGORITHM], audience: AUDIENCE, currentDate: new Date(now), requiredClaims: ["exp"] },
    );
    return KeyClaims.safeParse(payload).data ?? null;
  } catch (error) {
    if (error instanceof errors.JOSEError) return null;
    throw error;
  }
}
