/** From what the user names to the log: a file, an id in a folder, or an id at a service. */
import { createReadStream, readdirSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { scanLog } from "../../../src/replay/scan.ts";
import { type FileSource, openFile } from "./file-source.ts";
import type { Place } from "./options.ts";
import { remoteLog } from "./remote.ts";
import { spool } from "./spool.ts";

/** Opens the log. Throws with one sentence where there is none. */
export async function findLog(name: string, place: Place): Promise<FileSource> {
  if (place.kind === "service") return spool(await remoteLog(place, name));
  const named = statSync(name, { throwIfNoEntry: false });
  if (named?.isFile()) return openFile(name);
  if (named?.isDirectory()) throw new Error(`${name} is a folder: --list ${name} shows its logs`);
  if (named !== undefined) return spool(createReadStream(name)); // a pipe can be read but once
  const paths = logFiles(place.path);
  const called = paths.filter((path) => basename(path, ".jsonl") === name);
  const found = called.length > 0 ? called : paths.filter((path) => idOf(path) === name);
  if (found.length > 1) throw new Error(`several logs have the id ${name}: ${found.join(", ")}`);
  if (found.length === 0) throw new Error(`there is no file ${name}, and no log with that id in ${place.path}`);
  return openFile(found[0]!);
}

/** The files of a folder that may be logs, by name. */
export function logFiles(folder: string): string[] {
  const names = readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    return entry.name.endsWith(".jsonl") && !entry.isDirectory() ? [entry.name] : [];
  });
  return names.sort().map((name) => join(folder, name));
}

/** The id in a log's header, `null` where there is none to be read. */
function idOf(path: string): string | null {
  const file = openFile(path);
  let id: string | null = null;
  try {
    // The header is all that is wanted: the line after it ends the reading.
    scanLog(file, {
      header: (header) => {
        id = header.id;
      },
      line: ({ number }) => ({ line: number, message: "enough" }),
    });
  } finally {
    file.close();
  }
  return id;
}
