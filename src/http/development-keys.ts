/**
 * What signs session tokens where there is no SIGNING_KEY. Everybody on the machine is the development principal there,
 * but a page of another origin is not: with a key that it knew, it could sign itself a token for any session. So the key
 * is random, and kept with the local data, since tokens outlive a restart.
 */
import type { Env } from "./env.ts";
import type { SigningKeys } from "./signing.ts";

const KID = "development";

/** In the bucket that stands for R2 on this machine, beside the tenants. */
const OBJECT = "development/token-key";
const KEY_BYTES = 32;

/** Once there is a key, it is read once an isolate. */
let known: SigningKeys | null = null;

/** The key that was made here, or none: no token was signed yet. */
export async function developmentKeys({ SNAPSHOTS }: Pick<Env, "SNAPSHOTS">): Promise<SigningKeys> {
  if (known !== null) return known;
  const stored = await SNAPSHOTS.get(OBJECT);
  if (stored === null) return new Map();
  known = new Map([[KID, new Uint8Array(await stored.arrayBuffer())]]);
  return known;
}

/** The same, made now if there is none. Of two that are made at once the first stays. */
export async function madeDevelopmentKeys({ SNAPSHOTS }: Pick<Env, "SNAPSHOTS">): Promise<SigningKeys> {
  const there = await developmentKeys({ SNAPSHOTS });
  if (there.size > 0) return there;
  const key = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
  await SNAPSHOTS.put(OBJECT, key, { onlyIf: { etagDoesNotMatch: "*" } });
  return developmentKeys({ SNAPSHOTS });
}
