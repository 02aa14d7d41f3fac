/**
 * A small service that speaks the HTTP contract, for tests of clients: sessions in memory, turns scripted by their
 * input (see `SCRIPTS`). Loopback, any free port. It also notes every request.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { echo, SCRIPTS } from "./stub-turns.ts";

export interface StubEvent {
  event: string;
  data: Record<string, unknown>;
  /** The connection breaks before this event, once. */
  breakBefore?: boolean;
}

export interface StubTurn {
  id: string;
  events: StubEvent[];
  /** More events come later; until then streams stay open. */
  open: boolean;
  broken: boolean;
  wake: Set<() => void>;
}

export interface StubSession {
  id: string;
  agent: string;
  epoch: number;
  rules: string;
  messages: { seq: number; id: string; role: string; text: string; status: string; ts: string; turn: string }[];
  turns: Map<string, StubTurn>;
  keys: Map<string, { turn: string; body: string }>;
}

export interface SeenRequest {
  method: string;
  path: string;
  headers: IncomingMessage["headers"];
  body: string;
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
type Reply = { status: number; type: string; body: string } | { stream: StubTurn; after: number; deaf: boolean };

function json(value: unknown, status = 200): Reply {
  return { status, type: "application/json", body: JSON.stringify(value) };
}

function problem(status: number, code: string, title: string, detail: string, more: object = {}): Reply {
  const body = JSON.stringify({ type: "about:blank", title, status, detail, code, ...more });
  return { status, type: "application/problem+json", body };
}

const PROMPT = "You are Wren.\n\nBe brief.";

export class StubService {
  readonly seen: SeenRequest[] = [];
  readonly sessions = new Map<string, StubSession>();
  /** Answers every request of this path with this problem. */
  readonly refuse = new Map<string, { status: number; code: string; title: string; detail: string }>();
  /** What `/prompts/{sha256}` serves; another text than the prompt makes the hash wrong. */
  promptText = PROMPT;
  /** Whether it has a list of sessions; 404 otherwise, as of an older service. */
  canList = false;
  /** What the list still says of sessions, by id: entries may be behind. */
  readonly behind = new Map<string, Record<string, unknown>>();
  /** 404 for cancel, as a service without that route would answer. */
  canCancel = true;
  readonly #server: Server;
  #made = 0;
  #port = 0;

  constructor() {
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch((error: unknown) => response.destroy(error as Error));
    });
  }

  async start(port = 0): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(port, "127.0.0.1", resolve));
    this.#port = (this.#server.address() as AddressInfo).port;
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** May be called again. */
  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  requests(method: string, path: RegExp): SeenRequest[] {
    return this.seen.filter((request) => request.method === method && path.test(request.path));
  }

  addSession(id: string, agent = "concierge"): StubSession {
    const session = { id, agent, epoch: 1, rules: "", messages: [], turns: new Map(), keys: new Map() };
    this.sessions.set(id, session);
    return session;
  }

  resource({ id, agent, epoch, rules, messages }: StubSession): Record<string, unknown> {
    return {
      id,
      agent,
      agentVersion: `sha256:${sha256(agent)}`,
      identity: { version: 1, id: "agent-1", name: "Wren", source: "generated" },
      level: "main",
      parent: null,
      epoch,
      fingerprint: `sha256:${sha256(rules)}`,
      promptSha256: sha256(PROMPT),
      policy: "frozen",
      model: "demo/echo",
      metadata: {},
      state: "idle",
      messageCount: messages.length,
      createdAt: "2026-01-01T00:00:00.000Z",
      updatedAt: "2026-01-01T00:00:00.000Z",
      snapshot: "stored",
      drift: null,
      activeTurn: null,
    };
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    const { pathname: path, searchParams: query } = new URL(request.url ?? "/", this.url);
    const seen = { method: request.method ?? "GET", path, headers: request.headers, body };
    this.seen.push(seen);
    const reply = this.#route(seen, query);
    if ("stream" in reply) {
      // The connection dies before the client hears of the turn.
      if (reply.deaf) request.socket.destroy();
      else this.#stream(reply.stream, reply.after, response);
      return;
    }
    response.writeHead(reply.status, { "Content-Type": reply.type });
    response.end(reply.body);
  }

  #route({ method, path, headers, body }: SeenRequest, query: URLSearchParams): Reply {
    const refused = this.refuse.get(path);
    if (refused) return problem(refused.status, refused.code, refused.title, refused.detail);
    if (method === "POST" && path === "/v1/sessions") {
      const { agent } = JSON.parse(body) as { agent: string };
      if (agent !== "concierge" && agent !== "standup") {
        const errors = [{ path: "agent", message: `no agent "${agent}"` }];
        return problem(400, "invalid_request", "The request is not valid", "There is no such agent.", { errors });
      }
      this.#made += 1;
      return json(this.resource(this.addSession(`session-${this.#made}`, agent)), 201);
    }
    if (method === "GET" && path === "/v1/sessions" && this.canList) {
      const items = [...this.sessions.values()]
        .reverse()
        .map((session) => ({ ...this.resource(session), ...this.behind.get(session.id) }));
      return json({ items: items.slice(0, Number(query.get("limit"))), next: null });
    }
    const [, id = "", rest = ""] = /^\/v1\/sessions\/([^/]+)(.*)$/.exec(path) ?? [];
    const session = this.sessions.get(decodeURIComponent(id));
    if (!session) return problem(404, "not_found", "Not found", "There is no such session.");
    switch (`${method} ${rest}`) {
      case "GET ":
        return json(this.resource(session));
      case "POST /clear":
        session.messages = [];
        session.epoch += 1;
        return json(this.resource(session));
      case "POST /refresh": {
        const { project } = JSON.parse(body) as { project?: { rules: string } };
        if (project && project.rules !== session.rules) {
          session.rules = project.rules;
          session.epoch += 1;
        }
        return json(this.resource(session));
      }
      case "GET /messages": {
        const from = Number(query.get("after") ?? 0);
        const items = session.messages.filter(({ seq }) => seq > from).slice(0, Number(query.get("limit") ?? 50));
        const last = items.at(-1)?.seq ?? from;
        return json({ items, next: session.messages.some(({ seq }) => seq > last) ? String(last) : null });
      }
      case "GET /context": {
        const tokens = { system: 1200, tools: 300, history: 10_500, free: 88_000 };
        return json({ budget: 100_000, tokens, historyFrom: 1, estimator: "utf8/4" });
      }
      case "GET /prompts": {
        const entry = { seq: 4, sha256: sha256(PROMPT), model: "demo/echo", family: "demo", level: "main", epoch: 1 };
        return json({ items: [entry], next: null });
      }
      case `GET /prompts/${sha256(PROMPT)}`:
        return { status: 200, type: "text/plain; charset=utf-8", body: this.promptText };
      case "POST /turns":
        return this.#postTurn(session, String(headers["idempotency-key"] ?? ""), body);
    }
    const [, turnId = "", action = ""] = /^\/turns\/([^/]+)\/(\w+)$/.exec(rest) ?? [];
    const turn = session.turns.get(turnId);
    if (turn && method === "GET" && action === "stream") {
      return { stream: turn, after: Number(headers["last-event-id"] ?? query.get("after") ?? 0), deaf: false };
    }
    if (turn && method === "POST" && action === "cancel" && this.canCancel) {
      if (!turn.open) return problem(409, "wrong_state", "The present state does not allow this", "It has ended.");
      turn.open = false;
      turn.events.push({ event: "end", data: { state: "cancelled", reason: null, usage: null } });
      for (const wake of turn.wake) wake();
      return json({ id: turn.id, session: session.id, state: "cancelled" });
    }
    return problem(404, "not_found", "Not found", "There is no such thing.");
  }

  #postTurn(session: StubSession, key: string, body: string): Reply {
    const { input } = JSON.parse(body) as { input: string };
    const known = session.keys.get(key);
    if (known && known.body !== body) return problem(422, "idempotency_mismatch", "The key was used", "Another body.");
    const old = known && session.turns.get(known.turn);
    if (old) return { stream: old, after: 0, deaf: false };
    if (input === "busy") return problem(429, "queue_full", "Too many queued turns", "100 turns are waiting.");
    const id = `turn-${session.turns.size + 1}`;
    const events = (SCRIPTS[input] ?? echo)(id, input);
    const open = events.at(-1)?.event !== "end";
    const turn: StubTurn = { id, events, open, broken: false, wake: new Set() };
    session.turns.set(id, turn);
    session.keys.set(key, { turn: id, body });
    const text = events.map(({ event, data }) => (event === "delta" ? String(data.text) : "")).join("");
    for (const [role, said] of [
      ["user", input],
      ["assistant", text],
    ] as const) {
      const seq = session.messages.length + 1;
      const ts = "2026-01-01T00:00:00.000Z";
      session.messages.push({ seq, id: `m${seq}`, role, text: said, status: "complete", ts, turn: id });
    }
    return { stream: turn, after: 0, deaf: input === "deaf" };
  }

  /** Events after `cursor` (their number, from 1); the first thing said is always `turn`. */
  #stream(turn: StubTurn, cursor: number, response: ServerResponse): void {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    const send = (id: number, { event, data }: StubEvent) =>
      response.write(`id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    if (cursor > 0) send(cursor, turn.events[0]!);
    let at = cursor;
    const pump = () => {
      while (at < turn.events.length) {
        const event = turn.events[at]!;
        if (event.breakBefore && !turn.broken) {
          turn.broken = true;
          // After what was written has left, else it would be lost with the connection.
          setTimeout(() => response.destroy(), 20);
          return;
        }
        at += 1;
        send(at, event);
      }
      if (!turn.open) response.end();
    };
    turn.wake.add(pump);
    response.on("close", () => turn.wake.delete(pump));
    response.write(": keep-alive\n\n");
    pump();
  }
}
