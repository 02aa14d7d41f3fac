/** API keys: signed tokens (JWT, HS256) that carry tenant, scopes and expiry. Nothing about them is stored. */
import { errors, jwtVerify, SignJWT } from "jose";
import { z } from "zod";

export const SCOPES = ["agents:write", "sessions:write", "sessions:read", "prompts:read", "log:read"] as const;
export type Scope = (typeof SCOPES)[number];

/** Who is calling, and what they may do. */
export interface Principal {
  tenant: string;
  scopes: ReadonlySet<Scope>;
}

export const TENANT = /^[a-z0-9][a-z0-9-]{0,62}$/;

const AUDIENCE = "selfsame";
const ALGORITHM = "HS256";

/** RFC 7518 §3.2: a key for HS256 has at least 256 bits. */
const MIN_KEY_BYTES = 32;

/** Signing keys by `kid`; the first one signs, all of them verify. */
export type SigningKeys = ReadonlyMap<string, Uint8Array>;

const KeyClaims = z.object({ tenant: z.string().regex(TENANT), scopes: z.array(z.enum(SCOPES)) });
export type KeyClaims = z.infer<typeof KeyClaims>;

/** Unpadded or padded base64url: what `Buffer` would skip silently (spaces, quotes, a passphrase's words) is refused. */
const BASE64URL = /^[A-Za-z0-9_-]+={0,2}$/;

const KID = /^[A-Za-z0-9._-]{1,64}$/;

/**
 * Reads `SIGNING_KEY`: one base64url key (kid `default`), or JSON `{"kid":"key", …}`. Throws with what is wrong, never
 * with any of the text: the message goes to a log.
 */
export function parseSigningKeys(text: string): SigningKeys {
  const entries = text.trimStart().startsWith("{") ? namedKeys(text) : [["default", text.trim()] as const];
  if (entries.length === 0) throw new Error("SIGNING_KEY names no key");
  return new Map(
    entries.map(([kid, key]) => {
      const bytes = BASE64URL.test(key) ? new Uint8Array(Buffer.from(key, "base64url")) : new Uint8Array();
      if (bytes.byteLength < MIN_KEY_BYTES) {
        throw new Error(`SIGNING_KEY ${kid}: not base64url of at least ${MIN_KEY_BYTES} bytes`);
      }
      return [kid, bytes];
    }),
  );
}

/** Key by kid in the order of the text, which objects do not keep for kids such as "2026". */
function namedKeys(text: string): [kid: string, key: string][] {
  let parsed: ReturnType<typeof NamedKeys.safeParse>;
  try {
    parsed = NamedKeys.safeParse(JSON.parse(text));
  } catch {
    throw new Error("SIGNING_KEY begins like JSON and is none"); // JSON's own message quotes the text
  }
  if (!parsed.success)
    throw new Error(`SIGNING_KEY is not JSON of the form {"kid":"key"}, kids of letters, digits, . _ -`);
  const order = [...text.matchAll(/"([^"]*)"\s*:/g)].map(([, kid]) => kid);
  return Object.entries(parsed.data).sort(([a], [b]) => order.indexOf(a) - order.indexOf(b));
}

const NamedKeys = z.record(z.string().regex(KID), z.string());

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
