/** Where a log's bytes come from: read once from start to end, and again at places that were seen. */
export interface LogSource {
  /** The bytes in order. A chunk may be overwritten when the next one is asked for. */
  chunks(): Iterable<Uint8Array>;
  /** `length` bytes from `offset` on. */
  read(offset: number, length: number): Uint8Array;
}

/** A part of a source, such as a line. */
export interface SourceRange {
  offset: number;
  /** In bytes. */
  length: number;
}

/** A log that is in memory. */
export function bytesSource(bytes: Uint8Array): LogSource {
  return { chunks: () => [bytes], read: (offset, length) => bytes.subarray(offset, offset + length) };
}

/** The JSON value of a line that was read before. */
export function readAgain(source: LogSource, { offset, length }: SourceRange): unknown {
  return JSON.parse(new TextDecoder("utf-8", { ignoreBOM: true, fatal: true }).decode(source.read(offset, length)));
}
