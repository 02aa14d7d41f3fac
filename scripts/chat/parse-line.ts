/** What a typed line means. */

export type ParsedLine =
  | { kind: "blank" }
  | { kind: "message"; text: string }
  | { kind: "command"; name: string; argument: string };

/**
 * `/name argument` is a command, `//text` the message `/text`, anything else a message exactly as typed. A message
 * may begin with a slash after a blank, too: only the first character counts.
 */
export function parseLine(line: string): ParsedLine {
  if (line.trim() === "") return { kind: "blank" };
  if (line.startsWith("//")) return { kind: "message", text: line.slice(1) };
  if (!line.startsWith("/")) return { kind: "message", text: line };
  const [, name = "", argument = ""] = /^\/(\S*)\s*(.*)$/s.exec(line) ?? [];
  return { kind: "command", name, argument: argument.trim() };
}
