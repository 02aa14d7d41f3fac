/**
 * Every limit of the service: unit, reason, and what happens beyond it.
 * Sizes are bytes of UTF-8, never `.length`; times are milliseconds unless the name says otherwise.
 */

/**
 * A whole JSON body of a turn or a session. Two 1 MiB instruction slots, project rules and JSON escaping must fit;
 * beyond it the body is not read further: 413.
 */
export const MAX_BODY_BYTES = 8 * 1024 * 1024;

/**
 * Arrays and objects inside each other in a JSON body: 400. What is stored goes through calls that recurse (structured
 * clone, JSON.stringify) and would overflow the stack at some thousand levels, which fit into 16 KiB of metadata.
 */
export const MAX_JSON_DEPTH = 64;

/**
 * Values (array elements and object fields) in a JSON body: 400, before it is parsed. Parsed, `[[],[],…]` or `[[[…]]]`
 * takes up to thirty times its text, and a schema keeps a note for every wrong value, some hundred bytes each: a body
 * within the size limit would take more than the 128 MB of a worker.
 */
export const MAX_JSON_VALUES = 20_000;

/**
 * A whole JSON body of an imported history: 413. It must hold what is given out: a contract of the longest slots (3 MiB)
 * and its prompt for two model families, with JSON escaping and some million characters of history. Above it lie one RPC
 * call's 32 MiB, where a character may take two bytes that took one here, and the 128 MB of a worker, in which a body
 * stands about six times over on its way.
 */
export const MAX_HISTORY_BODY_BYTES = 12 * 1024 * 1024;
/** Values in such a body, about ten a message: 400. Its schema stops at the first faults, so wrong ones cost nothing. */
export const MAX_HISTORY_VALUES = 200_000;
/** Messages of an imported history: 400. All are written in one transaction, some microseconds each. */
export const MAX_HISTORY_MESSAGES = 20_000;
/** Blocks of one imported message: 400. A turn's input holds up to 6,666 parts (three values each), each of them a block. */
export const MAX_MESSAGE_BLOCKS = 7_000;

/**
 * A whole log that is imported: 413. It is checked to its end before anything is written, so all of it is in memory at once,
 * where a character may take two bytes that took one here, and once more the line that is being read; an object has 128 MB.
 */
export const MAX_IMPORT_BYTES = 32 * 1024 * 1024;
/**
 * Values (array elements and object fields) in one line of it: 400. A request has three for every part of the history it was
 * sent; a line of `[],[],[],…` within the size limit would take gigabytes.
 */
export const MAX_LINE_VALUES = 200_000;
/** The first line of an imported log, which names the session: 400. It holds an id, an agent and a time. */
export const MAX_IMPORT_HEADER_BYTES = 16 * 1024;

/** Faults named in one problem response, and characters of each text in it: the answer must not grow with the body. */
export const MAX_FIELD_ERRORS = 20;
export const MAX_PROBLEM_TEXT = 500;

/** The text of one turn's input, all parts together: 413 `too_large`. */
export const MAX_INPUT_BYTES = 1024 * 1024;

/** Each instruction slot given over the API, and project rules: 413 `too_large`. */
export const MAX_INSTRUCTIONS_BYTES = 1024 * 1024;

/** A session's or a message's `metadata`, as JSON: 413 `too_large`. */
export const MAX_METADATA_BYTES = 16 * 1024;

/** All temporary instructions of one turn together: 413 `too_large`. */
export const MAX_TEMPORARY_BYTES = 64 * 1024;
/** Pieces of temporary text in one turn. */
export const MAX_TEMPORARY_ITEMS = 16;
/** The longest life of a temporary text: a day, in seconds. */
export const MAX_TEMPORARY_TTL_SECONDS = 24 * 60 * 60;

/** Characters of a session id (R2 keys and object names are bounded at 1,024 bytes). */
export const MAX_ID_LENGTH = 128;
/** Characters of a model's name: every entry in the list of sessions carries one. */
export const MAX_MODEL_LENGTH = 200;
/** Characters of an identity's display name. */
export const MAX_IDENTITY_NAME_LENGTH = 80;
/** Visible ASCII characters of an `Idempotency-Key`. */
export const MAX_IDEMPOTENCY_KEY_LENGTH = 255;

/** Turns waiting in one session, the running one not counted: 429 `queue_full`. */
export const MAX_QUEUED_TURNS = 100;

/** Items of one list page, and what is given when the caller does not say. */
export const MAX_PAGE = 200;
export const DEFAULT_PAGE = 50;

/**
 * A value in one SQLite row. The platform refuses rows over 2 MB (local workerd does not), so longer text is
 * stored in several rows; 100 kB are left for the other columns.
 */
export const MAX_ROW_VALUE_BYTES = 1_900_000;

/** The longest a POST of a turn, or `Prefer: wait`, holds the request open before it answers 202. */
export const MAX_WAIT_MS = 90_000;

/** Without a byte from the provider for this long, the attempt ends as `provider_timeout`. */
export const PROVIDER_SILENT_MS = 120_000;

/**
 * A provider that is busy (429, 5xx, a refused connection) is asked again before any byte of an answer: at most this many
 * tries of one call's bytes, the last one begun within the window, so that whoever waits is not left hanging. The waits
 * between them triple from the first and vary by a quarter, so that sessions do not come back together; a provider that
 * names a time (`Retry-After`) is taken at its word, and not asked again when that lies beyond the window.
 */
export const PROVIDER_TRIES = 4;
export const PROVIDER_TRY_WINDOW_MS = 20_000;
export const PROVIDER_RETRY_MS = 500;

/**
 * The longest one call may take, however lively: `provider_timeout`. The platform keeps an object alive for 15 minutes of
 * one pending operation.
 */
export const MAX_CALL_MS = 15 * 60_000;

/** After the terminal event: how long the usage chunk is waited for, should the server keep the connection open. */
export const USAGE_WAIT_MS = 2_000;

/** An answer longer than this is cut off: `incomplete`. Bounds the memory one stream can take. */
export const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

/** The text of one imported message, all blocks together: 413. What was an answer here can be brought in elsewhere. */
export const MAX_MESSAGE_BYTES = MAX_ANSWER_BYTES;

/**
 * Each text of a saved prompt (base, developer, prepared): 413. The longest one that can be made here has two slots, rules
 * and a model family's notes: three times `MAX_INSTRUCTIONS_BYTES` and some more.
 */
export const MAX_SAVED_TEXT_BYTES = 4 * 1024 * 1024;
/** Prepared prompts of one saved prompt, one a model family and level: 400. */
export const MAX_SAVED_PROMPTS = 64;

/**
 * An answer that streams is kept as it grows: at most one row a second or for this many UTF-16 units, whichever comes
 * first, so that a crash costs at most that much of what was shown. An answer that ends sooner costs no row.
 */
export const CHECKPOINT_MS = 1_000;
export const CHECKPOINT_UNITS = 32 * 1024;

/** How much of a provider's error body is read for the log; the rest is dropped. */
export const MAX_PROVIDER_ERROR_BYTES = 4096;

/** A comment line on an idle event stream, so that proxies keep it open. */
export const STREAM_KEEPALIVE_MS = 15_000;

/**
 * How often the alarm looks after a live turn. After a crash the alarm is what wakes the object, so this is also
 * the longest a dead attempt stays undiscovered when nobody calls (the API promises 30 s).
 */
export const TURN_WATCH_MS = 20_000;

/** Attempts one turn may have: 409 beyond. Each keeps some bytes in the turn's row for every call it made. */
export const MAX_ATTEMPTS = 100;

/**
 * Attempts a turn may have before an interrupted one is tried again by itself (`onInterrupted: "retry"`): a turn that
 * kills its object must not do so for ever.
 */
export const MAX_UNASKED_ATTEMPTS = 3;

/** First wait before a failed snapshot upload is tried again; doubles up to the second number. */
export const OUTBOX_RETRY_MS = 2_000;
export const OUTBOX_RETRY_MAX_MS = 5 * 60_000;

/** Uploads of one outbox run; the platform allows 6 open connections, two are left for the turn. */
export const OUTBOX_BATCH = 4;

/** A prompt hook's answer. Rules are frozen with the contract, so a huge answer would be paid for on every turn. */
export const MAX_HOOK_BYTES = 256 * 1024;
/** How long a prompt hook may take when the agent does not say, and the most it can ask for. */
export const HOOK_TIMEOUT_MS = 5_000;
export const MAX_HOOK_TIMEOUT_MS = 30_000;

/** Tokens of history sent with a request when the agent does not say. */
export const DEFAULT_HISTORY_TOKENS = 100_000;

/** AGENTS.md above this many tokens makes the build warn (it is never demoted: the author meant it). */
export const AGENTS_MD_WARN_TOKENS = 8_000;

/** Rows, and bytes of their text, read at a time while a log is exported, so that memory does not grow with the log. */
export const EXPORT_PAGE_ROWS = 256;
export const EXPORT_PAGE_BYTES = 2 * 1024 * 1024;

/** Bytes of text in one page of messages; `next` goes on. One RPC answer of the platform holds at most 32 MiB. */
export const MESSAGE_PAGE_BYTES = 4 * 1024 * 1024;

/** `Retry-After` of a 503 for storage that failed or an object that is being reset, in seconds. */
export const STORAGE_RETRY_AFTER_SECONDS = 1;

/** How long a session's entry in the list may be behind: it is sent at most once in that time, whatever happens. */
export const INDEX_DELAY_MS = 60_000;
/** First wait before an entry that could not be sent is sent again; doubles up to the second number. */
export const INDEX_RETRY_MS = 2_000;
export const INDEX_RETRY_MAX_MS = 5 * 60_000;

/** How long the tenant's directory is waited for where its answer is needed: 503 `storage_unavailable`. */
export const DIRECTORY_WAIT_MS = 5_000;
/** The same where the work goes on without an answer: drift when a session is read, a turn of the policy `follow`. */
export const DIRECTORY_GLANCE_MS = 500;

/**
 * How long a deletion is remembered, so that an entry that was on its way does not bring the session back into the
 * list: four times what the platform lets an alarm's handler take.
 */
export const REMOVAL_MS = 60 * 60_000;

/** Agents one tenant may have published at a time: 400. With the two numbers below it bounds a directory to 2 GB. */
export const MAX_PUBLISHED_AGENTS = 100;
/** One published version, settings and files together: 413 `too_large`. Each of its sessions keeps a copy. */
export const MAX_AGENT_BYTES = 1024 * 1024;
/**
 * Placeholders in the files of one published agent: 400. Each is filled in with up to `MAX_DESCRIPTION_BYTES`: together
 * they add no more than the files are long. Without a bound a megabyte of them would become 200 MB at every compilation.
 */
export const MAX_AGENT_PLACEHOLDERS = 200;
/** Versions kept of one published agent; the oldest go first. Sessions keep their own copy, so none misses them. */
export const MAX_AGENT_VERSIONS = 20;
/** The description of a published agent: 413 `too_large`. Every list of agents carries it. */
export const MAX_DESCRIPTION_BYTES = 4096;

/** How long a session token is good when the caller does not say, and the most it can ask for: it cannot be taken back. */
export const TOKEN_TTL_SECONDS = 60 * 60;
export const MAX_TOKEN_TTL_SECONDS = 24 * 60 * 60;

/** Origins in one session token, and characters of each (a host name has at most 253): a token is sent with every call. */
export const MAX_TOKEN_ORIGINS = 10;
export const MAX_ORIGIN_LENGTH = 300;

/** How long a browser may keep the answer to a preflight; Chromium keeps none longer than two hours. */
export const CORS_MAX_AGE_SECONDS = 2 * 60 * 60;

/**
 * Calls in one period of a key, and of a session token: beyond it 429 `rate_limited`, and `Retry-After` is the period. The
 * bindings in wrangler.toml hold the same numbers; the platform counts in each of its locations, not over all of them.
 */
export const RATE_PERIOD_SECONDS = 60;
export const KEY_CALLS_PER_PERIOD = 600;
export const TOKEN_CALLS_PER_PERIOD = 60;

/**
 * One line of a log that is read: an error beyond it. The longest that can be written here is a text of 4 MiB whose every
 * byte is a control character, six bytes in JSON.
 */
export const MAX_LOG_LINE_BYTES = 64 * 1024 * 1024;

/**
 * What a reader of logs keeps at hand: the latest messages, in bytes of their lines (a turn's own are wanted at once, others
 * rarely), and what was rendered of messages. What is not there is read from the log and rendered again.
 */
export const REPLAY_MESSAGES_BYTES = 256 * 1024;
export const REPLAY_RENDERED_BYTES = 32 * 1024 * 1024;

/**
 * Hash states that are kept while a log is verified: of prompts (with model and parameters), and of histories under each.
 * A state is some hundred bytes, but it is found by looking at each. A session that goes to and fro between more of them
 * is verified all the same, each of its requests from the start.
 */
export const MAX_HASHED_HEADS = 32;
export const MAX_HASHED_HISTORIES = 8;

/** Faults that are named when a log is verified, and doubts when it is read; of the others only the number. */
export const MAX_NAMED_FAULTS = 20;
