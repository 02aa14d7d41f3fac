/**
 * A session from the export of another: `POST /v1/imports`. The whole file is read and checked first, then written in one
 * transaction. Nothing is ever sent because of an import: turns that ran or waited end with it.
 */
import { fail, ok, type Result } from "../errors.ts";
import { MAX_IMPORT_BYTES } from "../limits.ts";
import { LineSplitter } from "../log/lines.ts";
import { type SessionState, STATE_VERSION } from "../log/session-state.ts";
import { fingerprintHex, parseContractText } from "../prompt/fingerprint.ts";
import { familyOf, preparePrompt } from "../prompt/prepare.ts";
import { decodeUtf8 } from "../prompt/text.ts";
import { ExportReader, faultAt, type ReadExport } from "../replay/export-reader.ts";
import { DEFAULT_MODEL } from "../runtime/providers.ts";
import { IN_FLIGHT } from "../turn/table.ts";
import type { SessionContext } from "./context.ts";
import { keepText } from "./contract.ts";
import { listNow } from "./listing.ts";
import { emptyMemory } from "./memory.ts";
import type { SessionRow, TurnRow } from "./rows.ts";
import { follow } from "./run.ts";
import { cancelTurn, loseTurn } from "./settle.ts";

/** Whose session the log becomes: what the object is named after. */
export interface ImportTarget {
  tenant: string;
  id: string;
}

/** Makes the session. `session_exists` where the object holds one, whatever its agent. */
export async function importLog(
  ctx: SessionContext,
  target: ImportTarget,
  body: ReadableStream<Uint8Array>,
): Promise<Result<void>> {
  if (ctx.store.session() !== null) {
    await body.cancel();
    return exists(target);
  }
  const read = await readExport(body);
  if (!read.ok) return read;
  // Another request may have made it while the file was read.
  if (ctx.store.session() !== null) return exists(target);
  if (read.value.header.id !== target.id)
    return faultAt(1, { code: "invalid_request", message: "id: was read as another" });
  try {
    ctx.store.transaction(() => write(ctx, target, read.value));
  } catch (error) {
    ctx.live.clear(); // turns that were watched while they ended, and are not there
    throw error;
  }
  Object.assign(ctx.memory, emptyMemory(), { settled: true });
  return ok(undefined);
}

/** Reads the stream to its end, or to its first fault. */
async function readExport(body: ReadableStream<Uint8Array>): Promise<Result<ReadExport>> {
  const [splitter, reader] = [new LineSplitter(), new ExportReader()];
  let [bytes, lines] = [0, 0];
  const take = (raw: Uint8Array): Result<void> => {
    lines += 1;
    const line = decodeUtf8(raw);
    return line === null ? faultAt(lines, { code: "invalid_request", message: "is not UTF-8" }) : reader.push(line);
  };
  const source = body.getReader();
  for (;;) {
    const { done, value } = await source.read();
    if (done) return reader.finish(decodeUtf8(splitter.rest()));
    bytes += value.byteLength;
    const faults = bytes > MAX_IMPORT_BYTES ? [tooLarge()] : splitter.push(value).map(take);
    const fault = faults.find((result) => !result.ok);
    if (fault?.ok === false) {
      await source.cancel();
      return fault;
    }
  }
}

function write(ctx: SessionContext, target: ImportTarget, read: ReadExport): void {
  const { store } = ctx;
  const { log, lines, texts } = read;
  const session = log.session()!;
  store.migrate();
  const state = read.state ?? assumedState(ctx, read);
  const { version, inputs, agent, prepared, ...kept } = state;
  const { level, parent, createdAt, agent: name } = read.header;
  const row: SessionRow = {
    ...{ tenant: target.tenant, name: target.id, agent: name, level, parent, createdAt },
    ...session,
    ...kept,
    birth: ctx.randomHex(8),
    erasures: 0,
  };
  store.insertSession(row);
  for (const { role, ...line } of lines) store.log.insertLine(line, role);
  for (const turn of log.turns.values()) store.insertTurn({ ...turn, input: null } satisfies TurnRow);
  for (const { value, turn, bodySha256 } of log.keys.values()) store.insertKey(value, turn, bodySha256);
  for (const { kind, sha256, text } of texts) keepText(ctx, target.tenant, kind, sha256, text);
  for (const { epoch, family, level, sha256 } of prepared) store.insertPrepared(epoch, family, level, sha256);
  store.putText("inputs", JSON.stringify(inputs));
  if (agent !== null) store.putText("agent", JSON.stringify(agent));
  store.forget();
  endTurns(ctx);
  listNow(ctx);
}

/**
 * Turns that had not ended: their attempts are elsewhere, and so are their inputs. What was sent is `unknown`; what waited
 * is cancelled, because the session it was taken from may well send it.
 */
function endTurns(ctx: SessionContext): void {
  for (const { n, state } of ctx.store.liveTurns()) {
    const live = follow(ctx, ctx.store.turn(n)!);
    if (IN_FLIGHT.includes(state)) loseTurn(ctx, live, () => undefined);
    else cancelTurn(ctx, live);
  }
}

/** For an export without a state: what its entries say of it, and for the rest what a session begins with. */
function assumedState(ctx: SessionContext, { header, log, prompt, prompts, texts, lines }: ReadExport): SessionState {
  const session = log.session()!;
  const agent = Object.hasOwn(ctx.bundle.agents, header.agent) ? ctx.bundle.agents[header.agent]! : null;
  const model = prompt?.model ?? agent?.config.model ?? ctx.env.DEFAULT_MODEL ?? DEFAULT_MODEL;
  const family = prompt?.family ?? familyOf(model, Object.keys(ctx.bundle.models));
  const prepared = new Map<string, SessionState["prepared"][number]>();
  for (const { epoch, family, level, sha256 } of prompts) {
    prepared.set(JSON.stringify([epoch, family, level]), { epoch, family, level, sha256 });
  }
  const own = JSON.stringify([session.epoch, family, header.level]);
  if (!prepared.has(own)) {
    const hex = fingerprintHex(session.fingerprint);
    const contract = parseContractText(texts.find((one) => one.kind === "contract" && one.sha256 === hex)!.text)!;
    const { sha256, text } = preparePrompt(contract, ctx.bundle.models[family] ?? "");
    if (!texts.some((one) => one.kind === "prompt" && one.sha256 === sha256))
      texts.push({ kind: "prompt", sha256, text });
    prepared.set(own, { epoch: session.epoch, family, level: header.level, sha256 });
  }
  return {
    version: STATE_VERSION,
    ...{ model, family, metadata: {}, agentVersion: header.agentVersion, agentSource: "bundled", policy: "frozen" },
    promptSha256: prepared.get(own)!.sha256,
    drift: null,
    openingTurn: session.openingTurn,
    updatedAt: lines.at(-1)!.ts,
    inputs: { overrides: {}, project: null, hookRules: null },
    agent: null,
    prepared: [...prepared.values()],
  };
}

function exists({ id }: ImportTarget) {
  return fail("session_exists", `The session ${id} exists; nothing was changed.`);
}

function tooLarge() {
  return fail("too_large", `The log is longer than ${MAX_IMPORT_BYTES} bytes.`);
}
