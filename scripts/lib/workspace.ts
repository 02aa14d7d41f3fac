/** A throw-away copy of the project, so that prompt files can be edited and storage be broken without touching the real one. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "./wrangler.ts";

/** What the service is built from. `.build` and `.wrangler` are not: each workspace makes its own. */
const COPIED = ["src", "prompts", "scripts", "wrangler.toml", "package.json", "tsconfig.json"];

export interface Workspace {
  /** The folder that holds everything below; `remove` deletes it. */
  path: string;
  /** The copy of the project. */
  root: string;
  /** Where the service keeps its storage. */
  state: string;
  /** HOME for what is run in it. */
  home: string;
  read(file: string): string;
  write(file: string, text: string): void;
  /** Changes a file of the copy; one that comes out the same is an error, since nothing would be tested. */
  edit(file: string, change: (text: string) => string): void;
  remove(): void;
}

/** Copies the project this script belongs to into a new temporary folder, readable by this user only. */
export function createWorkspace(): Workspace {
  const path = mkdtempSync(join(tmpdir(), "selfsame-"));
  const [root, state, home] = [join(path, "project"), join(path, "state"), join(path, "home")];
  for (const folder of [root, state, join(home, "tmp")]) mkdirSync(folder, { recursive: true });
  for (const name of COPIED) cpSync(join(ROOT, name), join(root, name), { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(root, "node_modules"));
  const read = (file: string) => readFileSync(join(root, file), "utf8");
  const write = (file: string, text: string) => writeFileSync(join(root, file), text);
  return {
    ...{ path, root, state, home, read, write },
    edit: (file, change) => {
      const [before, after] = [read(file), change(read(file))];
      if (after === before) throw new Error(`${file}: the edit changes nothing`);
      write(file, after);
    },
    remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 5 }),
  };
}
