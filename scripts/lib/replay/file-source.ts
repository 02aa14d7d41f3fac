/** A log in a file: read in pieces, and again where it is asked for. */
import { closeSync, openSync, readSync } from "node:fs";
import type { LogSource } from "../../../src/replay/source.ts";

/** Bytes read at a time. */
const CHUNK_BYTES = 1024 * 1024;

export interface FileSource extends LogSource {
  close(): void;
}

/** Opens a regular file for reading. What is added to it meanwhile is read too. */
export function openFile(path: string): FileSource {
  const file = openSync(path, "r");
  return {
    *chunks() {
      const chunk = new Uint8Array(CHUNK_BYTES);
      let at = 0;
      for (
        let bytes = readSync(file, chunk, 0, CHUNK_BYTES, 0);
        bytes > 0;
        bytes = readSync(file, chunk, 0, CHUNK_BYTES, at)
      ) {
        at += bytes;
        yield chunk.subarray(0, bytes);
      }
    },
    read(offset, length) {
      const bytes = new Uint8Array(length);
      for (let at = 0; at < length; ) {
        const got = readSync(file, bytes, at, length - at, offset + at);
        if (got === 0) throw new Error("the file became shorter while it was read");
        at += got;
      }
      return bytes;
    },
    close: () => closeSync(file),
  };
}
