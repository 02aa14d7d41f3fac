/** What the service answers, as far as this client reads it (docs: /openapi.json). Unknown fields are ignored. */

export interface Session {
  id: string;
  agent: string;
  identity: { id: string; name: string; source: string };
  epoch: number;
  /** `sha256:<hex>`. */
  fingerprint: string;
  promptSha256: string | null;
  model: string;
  state: string;
  messageCount: number;
  updatedAt: string;
  activeTurn: string | null;
  drift: { candidate: string; since: string } | null;
}

/** A session as a list shows it. */
export type ListedSession = Pick<Session, "id" | "agent" | "messageCount" | "updatedAt"> & {
  identity: Pick<Session["identity"], "name">;
};

export interface Message {
  seq: number;
  id: string;
  role: string;
  text: string;
  status: string;
  ts: string;
}

export interface Page<T> {
  items: T[];
  /** Goes into `?after=`; `null` on the last page. */
  next: string | number | null;
}

/** Numbers are tokens, estimated. */
export interface ContextReport {
  budget: number;
  tokens: { system: number; tools: number; history: number; free: number };
  historyFrom: number | string | null;
  estimator: string;
}

export interface PromptEntry {
  seq: number;
  sha256: string;
  model: string;
  epoch: number;
}

export interface Project {
  name: string;
  rules: string;
}
