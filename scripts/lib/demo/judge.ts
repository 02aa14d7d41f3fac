/** The demo's findings and what they mean: pure, so that the verdict itself can be tested. */

/** What one run of the service showed, after its turn. */
export interface Run {
  /** The process's random id. */
  boot: string;
  identity: string;
  fingerprint: string;
  /** The prompt's SHA-256 as the model reports having been sent it, and as the turn resource says. */
  promptSent: string | null;
  promptSaid: string;
  messages: number;
  drift: boolean;
  /** How often the rules hook had been asked by then. */
  hookCalls: number;
}

export const MODES = ["frozen", "unfrozen"] as const;
export type Mode = (typeof MODES)[number];

/**
 * Everything that is not as it must be, one sentence each. `frozen`: nothing moves but the drift report, which must
 * come from the second run on. `unfrozen`: fingerprint and prompt move each time, identity and history do not.
 */
export function faults(mode: Mode, runs: readonly Run[]): string[] {
  const found: string[] = [];
  const first = runs[0];
  for (const [index, run] of runs.entries()) {
    const at = `run ${index + 1}`;
    const before = runs[index - 1];
    if (run.promptSent !== run.promptSaid) found.push(`${at}: the model was sent another prompt than the turn says`);
    if (run.messages !== 2 * (index + 1)) found.push(`${at}: ${run.messages} messages, not ${2 * (index + 1)}`);
    if (run.identity !== first?.identity) found.push(`${at}: the identity moved`);
    if (runs.findIndex(({ boot }) => boot === run.boot) !== index) found.push(`${at}: it is not a new process`);
    if (mode === "frozen") {
      if (run.fingerprint !== first?.fingerprint) found.push(`${at}: the fingerprint moved`);
      if (run.promptSent !== first?.promptSent) found.push(`${at}: the prompt moved`);
      if (run.drift !== index > 0) found.push(`${at}: drift is ${run.drift ? "reported" : "not reported"}`);
      if (run.hookCalls !== 1) found.push(`${at}: the hook was asked ${run.hookCalls} times, not once`);
    } else if (before !== undefined) {
      if (run.fingerprint === before.fingerprint) found.push(`${at}: the fingerprint did not move`);
      if (run.promptSent === before.promptSent) found.push(`${at}: the prompt did not move`);
    }
  }
  return found;
}

/** The runs as rows of text, a heading first. Hashes are shortened; the comparison above was not. */
export function table(runs: readonly Run[]): string[][] {
  const hash = (text: string | null) => (text === null ? "none" : text.replace(/^sha256:/, "").slice(0, 12));
  return [
    ["run", "boot", "identity", "fingerprint", "model was sent", "turn says", "messages", "drift", "hook calls"],
    ...runs.map((run, index) => [
      ...[String(index + 1), run.boot.slice(0, 8), run.identity, hash(run.fingerprint)],
      ...[hash(run.promptSent), hash(run.promptSaid)],
      ...[String(run.messages), run.drift ? "reported" : "none", String(run.hookCalls)],
    ]),
  ];
}
