/** What cannot be read twice, such as a service's answer or a pipe, is put into a temporary file of the user's own. */
import { createWriteStream, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type FileSource, openFile } from "./file-source.ts";

/** Only the user can read it (0600, in a folder with 0700), and it has no name any more once it is open. */
export async function spool(content: AsyncIterable<Uint8Array>): Promise<FileSource> {
  const folder = mkdtempSync(join(tmpdir(), "selfsame-replay-"));
  try {
    const path = join(folder, "log.jsonl");
    await pipeline(Readable.from(content), createWriteStream(path, { mode: 0o600 }));
    return openFile(path);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
