/**
 * A history from outside becomes this session's: `PUT …/history`. What was saved with it is restored as it was; what was
 * never saved is compiled, once. Everything is checked and rendered first, then written in one transaction.
 */
import { fail, ok, type Result } from "../errors.ts";
import type { Block, Role } from "../log/entries.ts";
import { restoredContract } from "../prompt/contract.ts";
import { conflicts, IDENTITY_VERSION, type Identity, type IdentityInput } from "../prompt/identity.ts";
import { preparePrompt } from "../prompt/prepare.ts";
import type { SavedPrompt, SavedState } from "../prompt/saved.ts";
import { type FreshContract, recompile, storedInputs } from "./compile.ts";
import { isoTime, type SessionContext, sessionRow } from "./context.ts";
import { adopt, beginEpoch, busy, cutHistoryOff, keepPrepared } from "./contract.ts";
import { writeDrift } from "./drift.ts";

export interface ImportedMessage {
  role: Role;
  content: Block[];
  status: "complete" | "partial";
  /** The caller's own; what is saved under our key stands in `HistoryImport.saved`. */
  metadata: Record<string, unknown> | null;
}

/** An import, already validated: blocks that fit their roles, tool calls paired, saved texts checked by hash. */
export interface HistoryImport {
  messages: ImportedMessage[];
  /** What the messages' metadata says. */
  saved: SavedState;
  /** An assertion: the session must have this identity afterwards. */
  identity?: IdentityInput | undefined;
}

/**
 * Cuts the present history off, as clear does, and puts the imported one in its place. Always a new epoch. Call at a
 * boundary between turns.
 */
export async function importHistory(ctx: SessionContext, request: HistoryImport): Promise<Result<void>> {
  const { messages, saved } = request;
  const row = sessionRow(ctx);
  const identity = identityAfter(row.identity, saved.identity);
  if (identity === null || conflicts(identity, request.identity)) {
    return fail("identity_conflict", "The session has another identity; nothing was changed.");
  }
  const fresh = saved.prompt === null ? await recompile(ctx, {}, identity) : ok(restored(ctx, saved.prompt));
  if (!fresh.ok) return fresh;
  // A turn may have been accepted while the hook was asked.
  if (ctx.store.queued().length > 0) return busy();

  ctx.store.transaction(() => {
    const cut = cutHistoryOff(ctx);
    const now = isoTime(ctx);
    if (identity !== row.identity) ctx.store.log.append(now, { type: "identity", body: { identity } });
    const messageCount = messages.filter(isCounted).length;
    const reason = saved.prompt === null ? "compiled_once" : "restored";
    beginEpoch(ctx, reason, fresh.value, { ...cut, identity, messageCount });
    const { tenant, epoch, family, level } = sessionRow(ctx);
    for (const one of saved.prompt?.prepared ?? []) {
      if (one.family !== family || one.level !== level) keepPrepared(ctx, tenant, epoch, one, one);
    }
    for (const { role, content, status, metadata } of messages) {
      ctx.store.log.appendMessage(now, null, role, content, status, metadata);
    }
    // What was saved may well differ from today's sources; found out later, that could fail with the import kept.
    writeDrift(ctx);
  });
  adopt(ctx, fresh.value.prepared.text);
  ctx.memory.history = null;
  return ok(undefined);
}

/**
 * Who the session is after the import, or `null` for a conflict. A saved id wins over a generated one only; its name goes
 * with it.
 */
function identityAfter(current: Identity, saved: SavedState["identity"]): Identity | null {
  if (saved === null) return current;
  const name = saved.name ?? current.name;
  if (saved.id === current.id) return name === current.name ? current : { ...current, name };
  return current.source === "generated" ? { version: IDENTITY_VERSION, id: saved.id, name, source: "restored" } : null;
}

/**
 * The saved contract and its prompt, as they were. Only for a model family that nothing was prepared for are today's
 * notes used. The session's own inputs stay, so that drift and refresh go on comparing with today's sources.
 */
function restored(ctx: SessionContext, saved: SavedPrompt): FreshContract {
  const { family, level } = sessionRow(ctx);
  const compiled = restoredContract({ base: saved.base, developer: saved.developer });
  const own = saved.prepared.find((one) => one.family === family && one.level === level);
  const prepared = own ?? preparePrompt(compiled.contract, ctx.bundle.models[family] ?? "");
  return { agent: null, compiled, prepared, inputs: storedInputs(ctx), hookFailure: null };
}

/** Complete words of the user or the model; a remark of the runtime is nobody's. */
function isCounted({ role, content, status }: ImportedMessage): boolean {
  if (status !== "complete" || role === "tool") return false;
  return role === "assistant" || content.some(({ type }) => type !== "notice");
}
