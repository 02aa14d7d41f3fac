/** Plays one scripted behaviour into a response, as Chat Completions frames. */
import type { ServerResponse } from "node:http";
import { setTimeout as delay, setImmediate as nextTick } from "node:timers/promises";
import type { ChatRequest } from "./provider-check.ts";
import type { ScriptEntry, ScriptUsage } from "./provider-script.ts";

export interface Playing {
  response: ServerResponse;
  request: ChatRequest;
  /** Counts the server's requests from 0; only used for the id in the frames. */
  index: number;
  defaultText: string;
  /** What a prefix cache that keeps to the rules makes of this request. */
  cachedUsage(text: string): ScriptUsage;
  /** Resolves with `true` when the control releases this request, `false` when its client has gone. */
  released(): Promise<boolean>;
  /** Says that the connection is about to be closed by the server, not by the client. */
  cut(): void;
}

interface Answer {
  usage?: ScriptUsage | "cached" | null | undefined;
  finish?: string | undefined;
}

/** Answers a request. Resolves when nothing more will be written. */
export async function play(entry: ScriptEntry, playing: Playing): Promise<void> {
  const { response, defaultText } = playing;
  const answer = (deltas: string[], more: Answer = {}) => {
    write(playing, ...deltas.map(deltaFrame));
    finish(playing, deltas.join(""), more);
  };
  switch (entry.kind) {
    case "answer": {
      const { text = defaultText, chunks = 3 } = entry;
      return answer(Array.isArray(chunks) ? chunks : pieces(text, chunks), entry);
    }
    case "slow": {
      const deltas = pieces(entry.text, entry.chunks ?? 3);
      for (const text of deltas) {
        await delay(entry.delayMs);
        if (response.destroyed) return;
        write(playing, deltaFrame(text));
      }
      return finish(playing, entry.text, {});
    }
    case "status":
      return sendStatus(response, entry);
    case "hang":
      write(playing, ...texts(entry.after));
      if (await playing.released()) answer([entry.rest ?? defaultText]);
      return;
    case "hang-before-headers":
      if (await playing.released()) answer([entry.rest ?? defaultText]);
      return;
    case "cut":
      playing.cut();
      if (entry.after === undefined) {
        response.destroy();
        return;
      }
      write(playing, ...texts(entry.after));
      // The callback comes when everything before it has gone to the socket.
      response.write(": cut\n\n", () => response.destroy());
      return;
    case "end-without-finish":
      write(playing, ...texts(entry.after));
      response.end();
      return;
    case "error-in-stream":
      write(playing, ...texts(entry.after), {
        error: { message: entry.message, type: "server_error", param: null, code: null },
      });
      response.end();
      return;
    case "raw":
      startStream(response);
      for (const chunk of entry.chunks) {
        response.write(Buffer.from(chunk, "base64"));
        await nextTick(); // so that pieces tend to arrive apart
      }
      if (entry.end !== false || (await playing.released())) response.end();
      return;
  }
}

function startStream(response: ServerResponse): void {
  if (response.headersSent) return;
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" });
  response.flushHeaders();
}

/** Writes frames, each on its own; the first write of a stream is preceded by the frame with the role. */
function write(playing: Playing, ...frames: object[]): void {
  const { response, request, index } = playing;
  const head = { id: `chatcmpl-fake-${index}`, object: "chat.completion.chunk", created: 0, model: request.model };
  const opening = response.headersSent ? [] : [{ choices: [choice({ role: "assistant", content: "" })] }];
  startStream(response);
  for (const frame of [...opening, ...frames]) response.write(`data: ${JSON.stringify({ ...head, ...frame })}\n\n`);
}

function finish(playing: Playing, text: string, { usage, finish: reason = "stop" }: Answer): void {
  const { response, request } = playing;
  write(playing, { choices: [choice({}, reason)] });
  if (request.stream_options?.include_usage && usage !== null) {
    const counted = usage === "cached" ? playing.cachedUsage(text) : (usage ?? countUsage(request, text));
    write(playing, { choices: [], usage: openaiUsage(counted) });
  }
  response.end("data: [DONE]\n\n");
}

function choice(delta: object, finish_reason: string | null = null): object {
  return { index: 0, delta, finish_reason };
}

function deltaFrame(content: string): object {
  return { choices: [choice({ content })] };
}

function texts(after: string | undefined): object[] {
  return after === undefined || after === "" ? [] : [deltaFrame(after)];
}

function sendStatus(response: ServerResponse, entry: ScriptEntry & { kind: "status" }): void {
  const { status, headers = {} } = entry;
  const body = entry.body ?? {
    error: { message: `scripted status ${status}`, type: "error", param: null, code: null },
  };
  const type = typeof body === "string" ? "text/plain" : "application/json";
  response.writeHead(status, { "content-type": type, ...headers });
  response.end(typeof body === "string" ? body : JSON.stringify(body));
}

/** The text in `count` pieces or fewer, cut between code points. */
function pieces(text: string, count: number): string[] {
  const characters = Array.from(text);
  const size = Math.max(1, Math.ceil(characters.length / count));
  return Array.from({ length: Math.ceil(characters.length / size) }, (_, index) =>
    characters.slice(index * size, (index + 1) * size).join(""),
  );
}

function countUsage(request: ChatRequest, text: string): ScriptUsage {
  const sent = request.messages.reduce((bytes, { content }) => bytes + Buffer.byteLength(content ?? ""), 0);
  return { input: Math.ceil(sent / 4), output: Math.ceil(Buffer.byteLength(text) / 4) };
}

function openaiUsage({ input, cachedInput = 0, cacheWrite, output }: ScriptUsage): object {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: {
      cached_tokens: cachedInput,
      ...(cacheWrite === undefined ? {} : { cache_write_tokens: cacheWrite }),
    },
  };
}
