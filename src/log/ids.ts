/** Ids of turns and messages: made of their numbers, so that a log needs no table of them. */

export function turnId(n: number): string {
  return `turn_${n}`;
}

/** The number in a turn id, or `null` for anything that is not one. */
export function turnNumber(id: string): number | null {
  const match = /^turn_([1-9][0-9]{0,14})$/.exec(id);
  return match === null ? null : Number(match[1]);
}

export function messageId(seq: number): string {
  return `msg_${seq}`;
}
