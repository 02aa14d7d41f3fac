/** The HTTP API as a client sees it: every answer with its status, nothing thrown. */
import type { MessageResource, SessionResource, TurnResource } from "../../../src/session/resources.ts";

export type { MessageResource, SessionResource, TurnResource };

export interface Problem {
  status: number;
  code: string;
  detail: string;
}

export interface Answer<T> {
  status: number;
  headers: Headers;
  body: T;
}

export interface LogLine {
  seq?: number;
  type: string;
  turn?: string;
  code?: string;
  text?: string;
  state?: string;
  bodySha256?: string;
  fingerprint?: string;
  epoch?: number;
}

export class Api {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  async call<T>(
    method: "GET" | "POST" | "DELETE",
    path: string,
    body?: object,
    headers: Record<string, string> = {},
  ): Promise<Answer<T>> {
    const response = await fetch(this.#url + path, {
      method,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const json = /[/+]json(;|$)/.test(response.headers.get("content-type") ?? "");
    return { status: response.status, headers: response.headers, body: (json ? JSON.parse(text) : text) as T };
  }

  create(body: object): Promise<Answer<SessionResource>> {
    return this.call("POST", "/v1/sessions", body);
  }

  async session(id: string): Promise<SessionResource> {
    return (await this.call<SessionResource>("GET", `/v1/sessions/${id}`)).body;
  }

  turn(session: string, input: string): Promise<Answer<TurnResource & Problem>> {
    return this.call("POST", `/v1/sessions/${session}/turns`, { input });
  }

  /** Submits without waiting; the turn's id. */
  async submit(session: string, input: string): Promise<string> {
    const path = `/v1/sessions/${session}/turns`;
    const { status, body } = await this.call<TurnResource>("POST", path, { input }, { prefer: "respond-async" });
    if (status !== 202) throw new Error(`${path} answered ${status}: ${JSON.stringify(body)}`);
    return body.id;
  }

  async turnState(session: string, turn: string): Promise<TurnResource> {
    return (await this.call<TurnResource>("GET", `/v1/sessions/${session}/turns/${turn}`)).body;
  }

  async messages(session: string): Promise<MessageResource[]> {
    return (await this.call<{ items: MessageResource[] }>("GET", `/v1/sessions/${session}/messages?limit=200`)).body
      .items;
  }

  /** The exported log, byte for byte. */
  async rawLog(session: string): Promise<string> {
    return (await this.call<string>("GET", `/v1/sessions/${session}/log`)).body;
  }

  async log(session: string): Promise<LogLine[]> {
    const text = await this.rawLog(session);
    return text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as LogLine);
  }
}
