/** Where the command writes: standard output, or a file that is there whole or not at all. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";

export interface Output {
  write(content: string | Uint8Array): Promise<void>;
  /** Call once when all is written; without it a file does not appear. */
  finish(): void;
  /** Drops what was not finished. May be called after `finish`. */
  close(): void;
}

/** Standard output, waiting where the reader is slower. */
export function standardOutput(): Output {
  return {
    async write(content) {
      if (!process.stdout.write(content)) await once(process.stdout, "drain");
    },
    finish() {},
    close() {},
  };
}

/** A file that its owner alone can read (0600), also where one was there before; folders that are made get 0700. */
export function fileOutput(path: string): Output {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${randomUUID()}`;
  const file = openSync(draft, "wx", 0o600);
  let open = true;
  const closed = () => {
    if (open) closeSync(file);
    open = false;
  };
  return {
    async write(content) {
      const bytes = typeof content === "string" ? Buffer.from(content) : content;
      for (let at = 0; at < bytes.byteLength; ) at += writeSync(file, bytes, at);
    },
    finish() {
      closed();
      renameSync(draft, path);
    },
    close() {
      closed();
      rmSync(draft, { force: true });
    },
  };
}
