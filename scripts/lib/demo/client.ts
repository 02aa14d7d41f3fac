/** The demo's few calls to the service, over plain HTTP as any client makes them. */

export interface SessionView {
  id: string;
  identity: { id: string; source: string };
  fingerprint: string;
  promptSha256: string;
  epoch: number;
  messageCount: number;
  drift: { candidate: string } | null;
}

export interface TurnView {
  state: string;
  promptSha256: string;
  output: { text: string };
}

export class DemoClient {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  createSession(body: object): Promise<SessionView> {
    return this.#call("/v1/sessions", body);
  }

  session(id: string): Promise<SessionView> {
    return this.#call(`/v1/sessions/${id}`);
  }

  turn(session: string, input: string): Promise<TurnView> {
    return this.#call(`/v1/sessions/${session}/turns`, { input });
  }

  log(session: string): Promise<string> {
    return this.#text(`/v1/sessions/${session}/log`);
  }

  async #call<T>(path: string, body?: object): Promise<T> {
    return JSON.parse(await this.#text(path, body)) as T;
  }

  async #text(path: string, body?: object): Promise<string> {
    const post = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const response = await fetch(this.#url + path, body === undefined ? {} : post);
    const text = await response.text();
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text}`);
    return text;
  }
}

/** What demo/echo says about the system text it was sent: its SHA-256, computed by the model's side. */
export function reportedPrompt(answer: string): string | null {
  return /system text of [\d,]+ bytes?, sha256 ([0-9a-f]{64})\b/.exec(answer)?.[1] ?? null;
}
