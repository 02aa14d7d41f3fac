/** One kept connection to a server, and the time a streamed answer takes on it. */
import { Agent, type IncomingMessage, request } from "node:http";

export interface Timed {
  /** When the request began, on `performance.now()`'s clock. */
  at: number;
  /** Milliseconds until the text waited for had come. */
  first: number;
  /** Milliseconds until the answer had ended. */
  total: number;
  /** Bytes of the answer's body. */
  bytes: number;
}

export interface Expected {
  /** The text whose arrival is the first delta. */
  first: string;
  /** A text without which the answer is not whole. */
  end: string;
}

export class StreamClient {
  readonly #url: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });

  constructor(url: string) {
    this.#url = url;
  }

  /** Opens the connection if it is closed; touches nothing but `/healthz`. */
  async connect(): Promise<void> {
    await readText(await this.#send("GET", "/healthz", {}, ""));
  }

  /** Sends `body` and times the streamed answer. Throws unless it is a 200 with both texts in it. */
  async time(path: string, body: string | Buffer, expected: Expected): Promise<Timed> {
    const at = performance.now();
    const headers = { "content-type": "application/json", accept: "text/event-stream" };
    const response = await this.#send("POST", path, headers, body);
    let first: number | null = null;
    const text = await readText(response, (soFar) => {
      if (first === null && soFar.includes(expected.first)) first = performance.now() - at;
    });
    const total = performance.now() - at;
    if (response.statusCode !== 200 || first === null || !text.includes(expected.end)) {
      throw new Error(`${path} answered ${response.statusCode}: ${text.slice(0, 2000)}`);
    }
    return { at, first, total, bytes: Buffer.byteLength(text) };
  }

  close(): void {
    this.#agent.destroy();
  }

  #send(method: string, path: string, headers: object, body: string | Buffer): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const length = { "content-length": Buffer.byteLength(body) };
      const options = { method, agent: this.#agent, headers: { ...headers, ...length } };
      const outgoing = request(this.#url + path, options, resolve);
      outgoing.on("error", reject);
      outgoing.end(body);
    });
  }
}

/** The whole body; `onText` hears it as it grows. */
async function readText(response: IncomingMessage, onText: (soFar: string) => void = () => {}): Promise<string> {
  let text = "";
  response.setEncoding("utf8");
  for await (const piece of response) {
    text += piece as string;
    onText(text);
  }
  return text;
}
