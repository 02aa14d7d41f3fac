/** A prompts folder on disk: lists and reads it, and collects what is wrong. Knows nothing of what the texts mean. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { identityIdWarning, type Remark, type Remarks, unknownPlaceholders } from "../../src/prompt/check-agent.ts";
import { byCodeUnits, decodeUtf8, normalizeFile } from "../../src/prompt/text.ts";

export interface Entry {
  name: string;
  /** Relative to the prompts folder. */
  path: string;
  kind: "file" | "folder" | "other";
}

const NAMES: Record<Entry["kind"], string> = {
  file: "unknown file",
  folder: "unknown folder",
  other: "neither a file nor a folder",
};

/** What a path leads to. Links are followed; a dangling or circular one is nothing, and so is a pipe or a device. */
function kindOf(path: string): Entry["kind"] {
  try {
    const stat = statSync(path);
    return stat.isFile() ? "file" : stat.isDirectory() ? "folder" : "other";
  } catch {
    return "other";
  }
}

export interface ReadText {
  /** As it is bundled: `normalizeFile`. */
  text: string;
  /** With LF line ends and otherwise untouched: line numbers are counted here. */
  raw: string;
}

export class PromptFolder {
  readonly problems: Remark[] = [];
  readonly warnings: Remark[] = [];
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  /** Remarks on the files of one folder; a field stands before its message. `file` is relative to the prompts folder. */
  remark(folder: string, { problems, warnings }: Remarks): void {
    const placed = ({ file, field, message, ...rest }: Remark): Remark => {
      return { ...rest, file: `${folder}/${file}`, message: field === undefined ? message : `"${field}": ${message}` };
    };
    this.problems.push(...problems.map(placed));
    this.warnings.push(...warnings.map(placed));
  }

  problem(file: string, message: string, line?: number): void {
    this.problems.push(line === undefined ? { file, message } : { file, line, message });
  }

  warn(file: string, message: string, line?: number): void {
    this.warnings.push(line === undefined ? { file, message } : { file, line, message });
  }

  /** The entries of a folder in code-unit order, without dotfiles and README.md; none if it does not exist. */
  list(path: string): Entry[] {
    const at = join(this.#root, path);
    if (!statSync(at, { throwIfNoEntry: false })?.isDirectory()) return [];
    return readdirSync(at)
      .filter((name) => !name.startsWith(".") && name !== "README.md")
      .sort(byCodeUnits)
      .map((name) => {
        const child = path === "" ? name : `${path}/${name}`;
        return { name, path: child, kind: kindOf(join(this.#root, child)) };
      });
  }

  /** The entries that are what `accepts` names; every other one is a problem. */
  expect(path: string, accepts: (entry: Entry) => boolean, known: string): Entry[] {
    return this.list(path).filter((entry) => {
      if (accepts(entry)) return true;
      this.problem(entry.path, `${NAMES[entry.kind]} (known: ${known})`);
      return false;
    });
  }

  /** A text with its placeholders checked. `null`, with a problem noted, if it cannot be used. */
  template(path: string): ReadText | null {
    const read = this.text(path);
    if (read === null) return null;
    this.problems.push(...unknownPlaceholders(path, read.raw));
    return read;
  }

  /** A template that must have text. */
  required(path: string): ReadText | null {
    const read = this.template(path);
    if (read?.text === "") this.problem(path, "is empty");
    return read;
  }

  /** Points out `{{identity.id}}` up to a line. */
  warnOfIdentityId(path: string, { raw }: ReadText, lastLine?: number): void {
    this.warnings.push(...identityIdWarning(path, raw, lastLine));
  }

  /** A file's text, exact but for BOM and line ends. */
  text(path: string): ReadText | null {
    const bytes = this.#bytes(path);
    if (bytes === null) return null;
    const decoded = decodeUtf8(bytes);
    if (decoded === null) {
      this.problem(path, "is not UTF-8", firstBadLine(bytes));
      return null;
    }
    return { text: normalizeFile(decoded), raw: decoded.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n") };
  }

  #bytes(path: string): Buffer | null {
    try {
      return readFileSync(join(this.#root, path));
    } catch (error) {
      const code = error instanceof Error && "code" in error ? String(error.code) : "unknown error";
      this.problem(path, code === "ENOENT" ? "is missing" : `cannot be read (${code})`);
      return null;
    }
  }
}

/** No UTF-8 sequence holds the byte of a line feed, so lines can be decoded one at a time. */
function firstBadLine(bytes: Buffer): number {
  let line = 1;
  for (let start = 0; start <= bytes.length; line++) {
    const end = bytes.indexOf(10, start);
    if (decodeUtf8(bytes.subarray(start, end < 0 ? bytes.length : end)) === null) return line;
    if (end < 0) break;
    start = end + 1;
  }
  return line;
}
