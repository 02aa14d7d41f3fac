/** An event stream as an async sequence of events. Knows nothing of turns. */
import { createParser, type EventSourceMessage } from "eventsource-parser";

/** The service sends a comment every 15 s; three of them missing means that the connection is dead. */
export const SILENT_MS = 45_000;

/** One event may hold a whole answer (4 MiB, JSON-escaped); beyond this the stream is not one of ours. */
const MAX_EVENT_CHARS = 32 * 1024 * 1024;

/** Rejects when a read takes longer than `ms`. */
async function within<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing came for ${Math.round(ms / 1000)} s`)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * The events of one response body, in order, until it ends. An event that is cut off by the end is dropped, as the
 * SSE specification wants. Throws when the connection breaks or is silent for `silentMs`.
 */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  silentMs = SILENT_MS,
): AsyncGenerator<EventSourceMessage> {
  const ready: EventSourceMessage[] = [];
  let broken: Error | null = null;
  const parser = createParser({
    maxBufferSize: MAX_EVENT_CHARS,
    onEvent: (event) => ready.push(event),
    onError: (error) => {
      // Unknown fields are to be ignored; only an event without end is an error.
      if (error.type === "max-buffer-size-exceeded") broken = error;
    },
  });
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await within(reader.read(), silentMs);
      if (done) return;
      parser.feed(decoder.decode(value, { stream: true }));
      yield* ready.splice(0);
      if (broken) throw broken;
    }
  } finally {
    // Also when the consumer stops early: the connection is closed, not left to the garbage collector.
    reader.cancel().catch(() => undefined);
  }
}
