/** The logs of a folder, or the sessions of a service. A log that is torn or broken is listed with what is wrong. */
import { basename } from "node:path";
import { faultText } from "../../../src/replay/fault.ts";
import { readReplay } from "../../../src/replay/replay.ts";
import { openFile } from "./file-source.ts";
import { logFiles } from "./find-log.ts";
import type { Place } from "./options.ts";
import { remoteSessions } from "./remote.ts";
import { doubts } from "./summary.ts";

/** A row of the list, by column. */
export type ListRow = Record<string, string | number | null>;

export async function listLogs(place: Place): Promise<ListRow[]> {
  if (place.kind === "folder") return logFiles(place.path).map(listFile);
  const rows: ListRow[] = [];
  for await (const { id, agent, model, state, messageCount, createdAt } of remoteSessions(place)) {
    rows.push({ id, agent, model, state, messages: messageCount, started: createdAt });
  }
  return rows;
}

function listFile(path: string): ListRow {
  const name = basename(path);
  const broken = (notes: string) => ({ ...BROKEN, file: name, notes });
  try {
    const file = openFile(path);
    try {
      const read = readReplay(file);
      if (!read.ok) return broken(faultText(read.fault));
      const { scan, header, turns, promptChanges } = read.value;
      const { id, version } = scan.header;
      const started = [header.startedAt, header.createdAt].find((time) => typeof time === "string") ?? null;
      const counts = { turns: turns.length, prompts: promptChanges.length };
      return {
        file: name,
        id,
        version,
        started: started as string | null,
        ...counts,
        notes: doubts(read.value).join("; "),
      };
    } finally {
      file.close();
    }
  } catch (error) {
    return broken((error as Error).message);
  }
}

const BROKEN = { file: "", id: null, version: null, started: null, turns: null, prompts: null };

/** The rows as text, a heading first. */
export function listTable(rows: readonly ListRow[]): string[][] {
  const names = Object.keys(rows[0] ?? {});
  return [names, ...rows.map((row) => names.map((name) => String(row[name] ?? "-")))];
}
