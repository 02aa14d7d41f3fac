/** What the fake provider was really sent. */
import { createHash } from "node:crypto";
import type { FakeProvider } from "../../support/provider.ts";
import type { RecordedRequest } from "../../support/provider-state.ts";

export interface SentMessage {
  role: string;
  content: string;
}

export function messagesOf(request: RecordedRequest): SentMessage[] {
  return (request.parsed as { messages: SentMessage[] }).messages;
}

/** The system text of a request. */
export function systemOf(request: RecordedRequest): string {
  const [first] = messagesOf(request);
  if (first?.role !== "system") throw new Error("the request does not begin with a system message");
  return first.content;
}

/** A request's bytes up to the first message that is not the system's: what a provider's cache would keep. */
export function prefixOf(request: RecordedRequest): string {
  const end = request.body.indexOf('{"role":"user"');
  if (end < 0) throw new Error("no user message");
  return request.body.subarray(0, end).toString("latin1");
}

/** The requests in which something said contains the mark; what the system text says does not count. */
export function requestsWith(provider: FakeProvider, mark: string): RecordedRequest[] {
  const marked = ({ role, content }: SentMessage) => role !== "system" && content.includes(mark);
  return provider.requests.filter((request) => messagesOf(request).some(marked));
}

export function sha256(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}
