/**
 * Content-addressed texts in R2: the key is the hash of the bytes, checked on the way in (by R2) and on the way out
 * (here). Best effort by design: the object's SQLite is authoritative, this copy heals it and proves it.
 */
import { sha256Hex } from "../prompt/hash.ts";
import { decodeUtf8, utf8 } from "../prompt/text.ts";

export type SnapshotKind = "contract" | "prompt" | "tools";

const FOLDERS: Record<SnapshotKind, string> = { contract: "contracts", prompt: "prompts", tools: "tools" };

export interface SnapshotName {
  tenant: string;
  kind: SnapshotKind;
  /** Lower-case hex. */
  sha256: string;
}

/** `tenants/<tenant>/{contracts,prompts,tools}/sha256/<hex>`: never shared between tenants, erased by prefix. */
export function snapshotKey({ tenant, kind, sha256 }: SnapshotName): string {
  return `tenants/${tenant}/${FOLDERS[kind]}/sha256/${sha256}`;
}

/**
 * Keys this isolate has seen stored. A thousand sessions of one agent share two objects; remembering saves each later
 * one its two R2 calls. Bounded by forgetting everything, which only costs a HEAD a key again.
 */
const stored = new Set<string>();
const MAX_REMEMBERED = 10_000;

/** Forgets which keys are stored: for tests that empty the bucket under a living isolate. */
export function forgetStored(): void {
  stored.clear();
}

export class Snapshots {
  readonly #bucket: R2Bucket;

  constructor(bucket: R2Bucket) {
    this.#bucket = bucket;
  }

  /** Whether this isolate knows the snapshot to be stored, so that no upload needs to be queued. */
  isStored(name: SnapshotName): boolean {
    return stored.has(snapshotKey(name));
  }

  /**
   * Stores a text under its hash unless it is there. HEAD first: it is 12.5 times cheaper than a refused PUT, and one
   * key takes one write a second. Throws when R2 fails; the caller tries again later.
   */
  async put(name: SnapshotName, text: string): Promise<void> {
    const key = snapshotKey(name);
    if (stored.has(key)) return;
    const there = await this.#look(name);
    if (there !== "whole") {
      // Bytes under another checksum are not the ones this key promises: they are replaced.
      const onlyIf = there === "absent" ? { onlyIf: { etagDoesNotMatch: "*" } } : {};
      try {
        // `null` means another session stored it in between: the same bytes, by the key.
        await this.#bucket.put(key, utf8(text), { sha256: name.sha256, ...onlyIf });
      } catch (error) {
        // Too many writes to one key (429), or a put that stored and then failed: either way look before giving up.
        if ((await this.#look(name)) !== "whole") throw error;
      }
    }
    if (stored.size >= MAX_REMEMBERED) stored.clear();
    stored.add(key);
  }

  /** The text, verified against its hash; `null` when absent or altered. Throws when R2 fails. */
  async get(name: SnapshotName): Promise<string | null> {
    const object = await this.#bucket.get(snapshotKey(name));
    const bytes = object === null ? null : new Uint8Array(await object.arrayBuffer());
    if (bytes !== null && sha256Hex(bytes) === name.sha256) return decodeUtf8(bytes);
    stored.delete(snapshotKey(name));
    return null;
  }

  async #look(name: SnapshotName): Promise<"whole" | "absent" | "other"> {
    const head = await this.#bucket.head(snapshotKey(name));
    if (head === null) return "absent";
    const sum = head.checksums.sha256;
    return sum !== undefined && Buffer.from(sum).toString("hex") === name.sha256 ? "whole" : "other";
  }
}
