/** Where a reader of a turn's events is: characters of the attempt's text it has. As an SSE id: `attempt.offset`. */
export interface Cursor {
  attempt: number;
  offset: number;
}

/** Only what `cursorId` writes is a cursor. */
export function parseCursor(text: string): Cursor | null {
  const match = /^([1-9]\d{0,8})\.(0|[1-9]\d{0,8})$/.exec(text);
  return match === null ? null : { attempt: Number(match[1]), offset: Number(match[2]) };
}

export function cursorId({ attempt, offset }: Cursor): string {
  return `${attempt}.${offset}`;
}
