/**
 * What a message brought in from a saved history says of the session it was said in: `metadata.selfsame`. The one place
 * where identity and prompt come back from a caller; nothing is ever read out of a message's text.
 */
import { z } from "zod";
import { type ErrorCode, fail, ok, type Result } from "../errors.ts";
import { MAX_SAVED_PROMPTS, MAX_SAVED_TEXT_BYTES } from "../limits.ts";
import type { Level } from "./contract.ts";
import { type Contract, fingerprint, sameFingerprint } from "./fingerprint.ts";
import { sha256Hex } from "./hash.ts";
import { IDENTITY_VERSION, type Identity, IdentityId, IdentityName } from "./identity.ts";
import { byteLength, jsonPath } from "./text.ts";

export const SAVED_VERSION = 1;

/** The key of a message's metadata that is ours; all others are the caller's. */
const KEY = "selfsame";

/** A prepared prompt with what it was prepared for. */
export interface SavedPreparedPrompt {
  family: string;
  level: Level;
  text: string;
  sha256: string;
}

export interface SavedPrompt extends Contract {
  fingerprint: string;
  prepared: SavedPreparedPrompt[];
}

/** What a whole history says: one identity, and the newest prompt; `null` where it says nothing. */
export interface SavedState {
  identity: { id: string; name?: string | undefined } | null;
  prompt: SavedPrompt | null;
}

/** A message's `metadata.selfsame`, as this service writes it. */
export interface SavedMetadata {
  version: typeof SAVED_VERSION;
  identity: Identity;
  prompt?: SavedPrompt;
}

type Metadata = Readonly<Record<string, unknown>>;

const text = z.string().refine((value) => byteLength(value) <= MAX_SAVED_TEXT_BYTES, {
  error: `is longer than ${MAX_SAVED_TEXT_BYTES} bytes`,
  params: { tooLarge: true },
});

const Prepared = z.strictObject({
  family: z.string().min(1).max(200),
  level: z.enum(["main", "sub"]),
  text,
  sha256: z.string(),
});

const Saved = z.strictObject({
  version: z.literal(SAVED_VERSION),
  identity: z.strictObject({
    version: z.literal(IDENTITY_VERSION).optional(),
    id: IdentityId,
    name: IdentityName.optional(),
    source: z.enum(["explicit", "generated", "restored"]).optional(),
  }),
  prompt: z
    .strictObject({
      base: text,
      developer: text,
      fingerprint: z.string(),
      // Piped, so that the number is looked at before each of them is.
      prepared: z.array(z.unknown()).max(MAX_SAVED_PROMPTS).pipe(z.array(Prepared)),
    })
    .optional(),
});

/**
 * Reads the metadata of all messages, in order. `unsupported_version`, `hash_mismatch`, `too_large`, `invalid_identity`
 * and `invalid_request` name the first fault's place; two saved ids are `identity_conflict`.
 */
export function readSaved(metadata: readonly (Metadata | null | undefined)[]): Result<SavedState> {
  const found: SavedState = { identity: null, prompt: null };
  for (const [index, one] of metadata.entries()) {
    if (one === null || one === undefined || !Object.hasOwn(one, KEY)) continue;
    const path = ["messages", index, "metadata", KEY];
    const read = readOne(one[KEY], path);
    if (!read.ok) return read;
    const { identity, prompt } = read.value;
    if (found.identity !== null && found.identity.id !== identity.id) {
      const message = `another saved id than the messages before it have; nothing was changed`;
      return refuse("identity_conflict", [...path, "identity", "id"], message);
    }
    found.identity = { id: identity.id, name: identity.name };
    found.prompt = prompt ?? found.prompt;
  }
  return ok(found);
}

/** The caller's part of a message's metadata, `null` when there is none. */
export function callerMetadata(metadata: Metadata | null | undefined): Record<string, unknown> | null {
  const { [KEY]: _, ...rest } = metadata ?? {};
  return Object.keys(rest).length === 0 ? null : rest;
}

/** A message's metadata with ours: what it says replaces whatever stood under our key. */
export function withSaved(metadata: Metadata | null, saved: SavedMetadata): Record<string, unknown> {
  return { ...metadata, [KEY]: saved };
}

function readOne(value: unknown, path: PropertyKey[]): Result<z.infer<typeof Saved>> {
  const parsed = Saved.safeParse(value);
  if (!parsed.success) {
    const issues = parsed.error.issues;
    // Another version may well have other fields: that it is another one is what there is to say.
    const issue = issues.find(isVersion) ?? issues[0]!;
    const keys = issue.code === "unrecognized_keys" ? issue.keys.slice(0, 1) : [];
    const message = issue.code === "unrecognized_keys" ? "unknown field" : issue.message;
    return refuse(codeOf(issue), [...path, ...issue.path, ...keys], message);
  }
  const { prompt } = parsed.data;
  return (prompt === undefined ? null : promptFault(prompt, [...path, "prompt"])) ?? ok(parsed.data);
}

function promptFault(prompt: SavedPrompt, path: PropertyKey[]) {
  if (!sameFingerprint(fingerprint(prompt), prompt.fingerprint)) {
    return refuse("hash_mismatch", [...path, "fingerprint"], "is not the fingerprint of base and developer");
  }
  const seen = new Set<string>();
  for (const [index, { family, level, text, sha256 }] of prompt.prepared.entries()) {
    const at = [...path, "prepared", index];
    if (sha256Hex(text) !== sha256) return refuse("hash_mismatch", [...at, "sha256"], "is not the SHA-256 of the text");
    const name = `${level} ${family}`;
    if (seen.has(name)) return refuse("invalid_request", at, "this family and level are there already");
    seen.add(name);
  }
  return null;
}

function isVersion({ path, code }: z.core.$ZodIssue): boolean {
  return path.at(-1) === "version" && code === "invalid_value";
}

function codeOf(issue: z.core.$ZodIssue): ErrorCode {
  if (isVersion(issue)) return "unsupported_version";
  if (issue.code === "custom" && issue.params?.tooLarge === true) return "too_large";
  return issue.path[0] === "identity" ? "invalid_identity" : "invalid_request";
}

function refuse(code: ErrorCode, path: readonly PropertyKey[], message: string) {
  const at = jsonPath(path);
  return fail(code, `${at}: ${message}`, { errors: [{ path: at, message }] });
}
