import { createHash } from "node:crypto";

/** SHA-256 as 64 lower-case hex digits. A string is hashed as its UTF-8 bytes. Synchronous, in workerd and Node alike. */
export function sha256Hex(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}
