/** Why a log cannot be read. */
export interface LogFault {
  /** From 1; `null` for the log as a whole. */
  line: number | null;
  message: string;
}

export function faultText({ line, message }: LogFault): string {
  return line === null ? message : `line ${line}: ${message}`;
}
