/**
 * What a line must hold for the reader to work with it, as data: field by field, for each version. Fields that replay does
 * not look at are not checked, and types it does not know are none of its business.
 */

type Check = (value: unknown) => boolean;
type Shape = Readonly<Record<string, Check>>;

const text: Check = (value) => typeof value === "string";
const whole: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const object: Check = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const nullable =
  (check: Check): Check =>
  (value) =>
    value === null || check(value);
const absent =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const one =
  (...values: unknown[]): Check =>
  (value) =>
    values.includes(value);
const list =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
const fields =
  (shape: Shape): Check =>
  (value) =>
    object(value) && faultyField(shape, value as object) === null;

const range: Check = (value) => Array.isArray(value) && value.length === 2 && value.every(whole);

const BLOCKS: Readonly<Record<string, Shape>> = {
  tool_use: { id: text, name: text, arguments: text },
  tool_result: { callId: text, text },
};
const block: Check = (value) => {
  if (!object(value)) return false;
  const { type } = value as { type?: unknown };
  return typeof type === "string" && fields(Object.hasOwn(BLOCKS, type) ? BLOCKS[type]! : { text })(value);
};

const scalar: Check = (value) => ["string", "number", "boolean"].includes(typeof value) || value === null;
const params: Check = (value) => object(value) && Object.values(value as object).every(scalar);
const usage = fields({ input: whole, cachedInput: whole, cacheWrite: whole, output: whole });

/** Where an entry of version 3 stands. `turn` is there where it belongs to one. */
const ENTRY: Shape = { seq: whole, ts: text, turn: absent(text) };

const VERSION_3: Readonly<Record<string, Shape>> = {
  session: { ...ENTRY, version: one(3), id: text },
  snapshot: { kind: text, sha256: text, text },
  end: { entries: whole, sha256: text },
  contract: { ...ENTRY, fingerprint: text, epoch: whole, reason: text },
  clear: ENTRY,
  compaction: { ...ENTRY, from: whole, to: whole, trigger: text },
  prompt: { ...ENTRY, sha256: text, reason: text, model: text, epoch: whole },
  message: { ...ENTRY, role: one("user", "assistant", "tool"), content: list(block), status: text },
  turn: { ...ENTRY, state: text, attempt: whole, reason: nullable(text) },
  request: {
    ...{ ...ENTRY, attempt: whole, call: whole, purpose: text, wire: text, model: text, params },
    ...{ promptSha256: text, toolsSha256: nullable(text), history: list(range), projection: text },
    ...{ temporary: list(fields({ text })), bodySha256: text, bytes: whole },
  },
  response: {
    ...ENTRY,
    attempt: whole,
    call: whole,
    finish: nullable(text),
    usage: nullable(usage),
    status: nullable(whole),
    error: nullable(text),
  },
};

/** Messages and prompts of versions 1 and 2. A prompt whose text was not kept is read, and the text is missing. */
const OLDER: Readonly<Record<string, Shape>> = {
  message: { ts: text, message: fields({ role: text, content: (value) => text(value) || list(object)(value) }) },
  prompt: { ts: text, fingerprint: text, text: absent(nullable(text)), reason: text },
};

const SHAPES = { 1: { message: OLDER.message! }, 2: OLDER, 3: VERSION_3 } as const satisfies Record<
  number,
  Readonly<Record<string, Shape>>
>;

export type LogVersion = keyof typeof SHAPES;

export function isLogVersion(value: unknown): value is LogVersion {
  return typeof value === "number" && Object.hasOwn(SHAPES, value);
}

/** Whether lines of this type are read in this version; others are skipped. */
export function isKnownType(version: LogVersion, type: unknown): type is string {
  return typeof type === "string" && Object.hasOwn(SHAPES[version], type);
}

/** The first field of a line that is not as the version's format says, or `null`. The type must be a known one. */
export function faultyLine(version: LogVersion, type: string, line: object): string | null {
  return faultyField((SHAPES[version] as Readonly<Record<string, Shape>>)[type]!, line);
}

function faultyField(shape: Shape, value: object): string | null {
  for (const name in shape) if (!shape[name]!((value as Record<string, unknown>)[name])) return name;
  return null;
}

/** Whether an entry of version 3 has its place in the log. */
export function isPlaced(line: object): line is { seq: number } {
  return faultyField(ENTRY, line) === null;
}
