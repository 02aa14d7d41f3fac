/** Where a reader of a turn's events is: characters of the attempt's text it has. As an SSE id: `attempt.offset`. */
export interface Cursor {
  attempt: number;
  offset: number;
}

export function parseCursor(text: string): Cursor | null {
  const match = /^(\d{1,9})\.(\d{1,9})$/.exec(text);
  return match === null ? null : { attempt: Number(match[1]), offset: Number(match[2]) };
}

export function cursorId({ attempt, offset }: Cursor): string {
  return `${attempt}.${offset}`;
}
