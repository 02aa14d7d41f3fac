/**
 * A tenant's directory, one Durable Object: its published agents and the list of its sessions. A shell: RPC methods
 * only. Every method answers a Result and throws only for bugs. What is read of a tenant without one leaves no trace.
 */
import { DurableObject } from "cloudflare:workers";
import { fail, ok, type Result } from "../errors.ts";
import { MAX_AGENT_VERSIONS, MAX_PUBLISHED_AGENTS, REMOVAL_MS } from "../limits.ts";
import { type AgentDefinition, readDefinition } from "../prompt/agent.ts";
import { StorageError } from "../storage/database.ts";
import { directoryUnavailable } from "./client.ts";
import { type EntryQuery, type EntryVersion, type SessionEntry, writeCursor } from "./entry.ts";
import { DirectoryStore, type PublishedAgent } from "./store.ts";

export class DirectoryObject extends DurableObject<object> {
  readonly #store: DirectoryStore;

  constructor(state: DurableObjectState, env: object) {
    super(state, env);
    this.#store = new DirectoryStore(state.storage);
  }

  // ---- sessions ----

  /** Takes a session's entry, unless a newer one is there or the session was deleted since. */
  async record(entry: SessionEntry, version: EntryVersion): Promise<Result<null>> {
    return this.#writing(() => {
      if (!this.#store.isRemoved(entry.id, version)) this.#store.putEntry(entry, version);
      return ok(null);
    });
  }

  /** Forgets a session, and refuses what it has sent before. */
  async remove(id: string, version: Pick<EntryVersion, "birth" | "erasures">): Promise<Result<null>> {
    return this.#writing(() => {
      const now = Date.now();
      this.#store.dropRemovalsBefore(now - REMOVAL_MS);
      this.#store.putRemoval(id, version, now);
      this.#store.dropEntry(id, version);
      return ok(null);
    });
  }

  async list(query: EntryQuery): Promise<Result<{ items: SessionEntry[]; next: string | null }>> {
    return this.#reading({ items: [], next: null }, () => {
      const found = this.#store.entries({ ...query, limit: query.limit + 1 });
      const items = found.slice(0, query.limit);
      return { items, next: found.length > items.length ? writeCursor(items.at(-1)!) : null };
    });
  }

  // ---- agents ----

  async agents(): Promise<Result<PublishedAgent[]>> {
    return this.#reading([], () => this.#store.agents());
  }

  /** The published definition of a name; `same` when its version is the one already known, `null` when there is none. */
  async agent(name: string, known: string | null): Promise<Result<AgentDefinition | "same" | null>> {
    return this.#reading(null, () => {
      const published = this.#store.agent(name);
      if (published === null) return null;
      return published.version === known ? "same" : this.#definition(name, published.version);
    });
  }

  /** Makes a definition the current one of its name. `written` is false for what is current already. */
  async publish(definition: AgentDefinition): Promise<Result<{ created: boolean; written: boolean }>> {
    return this.#writing((): Result<{ created: boolean; written: boolean }> => {
      const { name, version, config } = definition;
      const current = this.#store.agent(name);
      if (current?.version === version) return ok({ created: false, written: false });
      if (current === null && this.#store.agentCount() >= MAX_PUBLISHED_AGENTS) return tooMany();
      this.#store.putVersion(name, version, JSON.stringify(definition), new Date().toISOString());
      this.#store.putAgent({ name, version, description: config.description, instructions: config.instructions });
      this.#store.dropOldVersions(name, version, MAX_AGENT_VERSIONS);
      return ok({ created: current === null, written: true });
    });
  }

  /** Takes an agent back, with its versions. Says whether it was published. */
  async unpublish(name: string): Promise<Result<boolean>> {
    return this.#guarded(() => {
      if (!this.#store.exists() || this.#store.agent(name) === null) return ok(false);
      this.#store.transaction(() => this.#store.dropAgent(name));
      return ok(true);
    });
  }

  // ---- plumbing ----

  #definition(name: string, version: string): AgentDefinition {
    const text = this.#store.version(name, version);
    const definition = text === null ? null : readDefinition(text);
    if (definition === null) throw new StorageError(`version ${version} of the agent ${name} cannot be read`);
    return definition;
  }

  #writing<T>(work: () => Result<T>): Result<T> {
    return this.#guarded(() => this.#store.transaction(work));
  }

  #reading<T>(nothing: T, work: () => T): Result<T> {
    return this.#guarded(() => ok(this.#store.exists() ? work() : nothing));
  }

  /** Storage failures become a value. */
  #guarded<T>(work: () => Result<T>): Result<T> {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      console.error("the directory's storage failed:", error.message);
      return directoryUnavailable();
    }
  }
}

function tooMany() {
  const message = `${MAX_PUBLISHED_AGENTS} agents are published already; delete one first`;
  return fail("invalid_request", `name: ${message}`, { errors: [{ path: "name", message }] });
}
