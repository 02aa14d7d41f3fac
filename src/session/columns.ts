/** How row types map to columns: one table a row type, so that a field is named in one place. */
import type { SessionRow, TurnRow } from "./rows.ts";

type Kind = "plain" | "json";
type Columns<Row> = { readonly [Field in keyof Row & string]: readonly [column: string, kind: Kind] };

export const SESSION_COLUMNS: Columns<SessionRow> = {
  tenant: ["tenant", "plain"],
  name: ["name", "plain"],
  agent: ["agent", "plain"],
  agentVersion: ["agent_version", "plain"],
  agentSource: ["agent_source", "plain"],
  level: ["level", "plain"],
  parent: ["parent", "plain"],
  identity: ["identity", "json"],
  policy: ["policy", "plain"],
  model: ["model", "plain"],
  family: ["family", "plain"],
  metadata: ["metadata", "json"],
  epoch: ["epoch", "plain"],
  fingerprint: ["fingerprint", "plain"],
  sources: ["sources", "json"],
  promptSha256: ["prompt_sha256", "plain"],
  loggedPrompt: ["logged_prompt", "plain"],
  drift: ["drift", "json"],
  messagesFrom: ["messages_from", "plain"],
  historyFrom: ["history_from", "plain"],
  gaps: ["gaps", "json"],
  messageCount: ["message_count", "plain"],
  endedThrough: ["ended_through", "plain"],
  cut: ["cut", "json"],
  lastState: ["last_state", "plain"],
  openingTurn: ["opening_turn", "plain"],
  birth: ["birth", "plain"],
  erasures: ["erasures", "plain"],
  createdAt: ["created_at", "plain"],
  updatedAt: ["updated_at", "plain"],
};

export const TURN_COLUMNS: Columns<TurnRow> = {
  n: ["n", "plain"],
  state: ["state", "plain"],
  event: ["event", "plain"],
  attempt: ["attempt", "plain"],
  reason: ["reason", "plain"],
  input: ["input", "json"],
  temporary: ["temporary", "json"],
  userSeq: ["user_seq", "plain"],
  answerSeq: ["answer_seq", "plain"],
  usage: ["usage", "json"],
  providerStatus: ["provider_status", "plain"],
  requests: ["requests", "json"],
  fingerprint: ["fingerprint", "plain"],
  promptSha256: ["prompt_sha256", "plain"],
  createdAt: ["created_at", "plain"],
  endedAt: ["ended_at", "plain"],
};

/** Reads a row as SQLite gives it. The tables are written by this module's statements only, so the types hold. */
export function readRow<Row>(columns: Columns<Row>, row: Record<string, SqlStorageValue>): Row {
  const entries = Object.entries<readonly [string, Kind]>(columns).map(([field, [column, kind]]) => {
    const value = row[column] ?? null;
    return [field, kind === "json" && typeof value === "string" ? JSON.parse(value) : value];
  });
  return Object.fromEntries(entries) as Row;
}

interface Statement {
  sql: string;
  values: SqlStorageValue[];
}

/** `INSERT` of a whole row; `store` may put a value elsewhere and give what the column keeps instead. */
export function insertStatement<Row extends object>(
  table: string,
  columns: Columns<Row>,
  row: Row,
  store: (column: string, value: SqlStorageValue) => SqlStorageValue = (_, value) => value,
): Statement {
  const pairs = columnValues(columns, row);
  const marks = pairs.map(() => "?").join(", ");
  return {
    sql: `INSERT INTO ${table} (${pairs.map(([column]) => column).join(", ")}) VALUES (${marks})`,
    values: pairs.map(([column, value]) => store(column, value)),
  };
}

/** `UPDATE … SET` of the given fields, without a condition. */
export function updateStatement<Row extends object>(
  table: string,
  columns: Columns<Row>,
  change: Partial<Row>,
): Statement {
  const pairs = columnValues(columns, change);
  return {
    sql: `UPDATE ${table} SET ${pairs.map(([column]) => `${column} = ?`).join(", ")}`,
    values: pairs.map(([, value]) => value),
  };
}

function columnValues<Row extends object>(columns: Columns<Row>, row: Partial<Row>): [string, SqlStorageValue][] {
  return Object.entries<readonly [string, Kind]>(columns).flatMap(
    ([field, [column, kind]]): [string, SqlStorageValue][] => {
      const value = (row as Record<string, unknown>)[field];
      if (value === undefined) return [];
      const stored = kind === "json" && value !== null ? JSON.stringify(value) : value;
      return [[column, stored as SqlStorageValue]];
    },
  );
}
