/** Signed tokens (JWT, HS256) and the keys that sign them. Which kinds of token there are: keys.ts, tokens.ts. */
import { errors, type JWTPayload, jwtVerify, SignJWT } from "jose";
import { z } from "zod";

const ALGORITHM = "HS256";

/** RFC 7518 §3.2: a key for HS256 has at least 256 bits. */
const MIN_KEY_BYTES = 32;

/** Signing keys by `kid`; the first one signs, all of them verify. */
export type SigningKeys = ReadonlyMap<string, Uint8Array>;

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

/**
 * Signs claims for one audience. The kinds of token have different ones, so that none passes for another. `expires` is in
 * seconds since 1970.
 */
export function signToken(
  keys: SigningKeys,
  { audience, claims, now, expires }: { audience: string; claims: object; now: number; expires: number },
): Promise<string> {
  const [kid, key] = [...keys][0]!;
  return new SignJWT({ ...claims })
    .setProtectedHeader({ alg: ALGORITHM, kid, typ: "JWT" })
    .setAudience(audience)
    .setIssuedAt(Math.floor(now / 1000))
    .setExpirationTime(expires)
    .sign(key);
}

export interface Verified {
  payload: JWTPayload;
  /** Everything about the token is right but its time. */
  expired: boolean;
}

/** What a token says that is ours, unaltered and for this audience; `null` for everything else. */
export async function verifyToken(
  token: string,
  keys: SigningKeys,
  audience: string,
  now: number,
): Promise<Verified | null> {
  try {
    const { payload } = await jwtVerify(
      token,
      ({ kid }) => {
        const key = keys.get(kid ?? "");
        if (key === undefined) throw new errors.JWKSNoMatchingKey();
        return key;
      },
      { algorithms: [ALGORITHM], audience, currentDate: new Date(now), requiredClaims: ["exp"] },
    );
    return { payload, expired: false };
  } catch (error) {
    // The time is looked at last, after signature and audience.
    if (error instanceof errors.JWTExpired) return { payload: error.payload, expired: true };
    if (error instanceof errors.JOSEError) return null;
    throw error;
  }
}
