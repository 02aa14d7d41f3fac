/** The order of everything: sessions are made and filled, then warm turns, resumed objects, and new processes. */
import { messageText } from "./conversation.ts";
import type { Lab, Round } from "./lab.ts";
import type { Plan } from "./options.ts";

/** Turns on every session before they count: connections open, code compiled, history in memory. */
const WARM_UP = 10;

/** The history length at which new processes are measured, or the nearest one there is. */
const RESTART_SIZE = 1000;

export interface Warm {
  messages: number;
  rounds: Round[];
  /** Rows that one turn added, by table. */
  rows: Record<string, number>;
}

/** Why the object was not in memory: left alone until it was gone, or the first one of a new process. */
export type Absence = "evicted" | "new process";

export interface Cold {
  absence: Absence;
  messages: number;
  rounds: Round[];
}

export interface Results {
  warm: Warm[];
  cold: Cold[];
}

type Say = (text: string) => void;

/** A session and how many messages its history holds now. */
interface Talk {
  id: string;
  messages: number;
}

/** Carries the plan out; `say` hears what is going on. */
export async function measure(lab: Lab, plan: Plan, say: Say): Promise<Results> {
  const restartSize = nearest(plan.sizes, RESTART_SIZE);
  const warm = plan.sizes.filter((size) => size > 0).map((size): Talk => ({ id: `warm-${size}`, messages: size }));
  const evicted = plan.sizes.map((size) => talks(`evicted-${size}`, size, plan.cold));
  const restarted = talks("restarted", restartSize, plan.restarts);
  await fill(lab, [...warm, ...evicted.flat(), ...restarted], say);

  const results: Results = { warm: [], cold: [] };
  for (const messages of plan.sizes) {
    say(`${plan.turns} warm turns at ${messages.toLocaleString("en")} messages`);
    results.warm.push(await warmTurns(lab, plan.turns, messages));
  }
  if (plan.cold > 0) results.cold.push(...(await resumeEvicted(lab, plan, evicted, say)));
  if (plan.restarts > 0) {
    const rounds = await resumeInNewProcesses(lab, restarted, say);
    results.cold.push({ absence: "new process", messages: restartSize, rounds });
  }
  return results;
}

async function warmTurns(lab: Lab, turns: number, messages: number): Promise<Warm> {
  const talk: Talk = { id: `warm-${messages}`, messages };
  // Without a history a turn is a session's first one; its object is in memory since it was created.
  const next = messages === 0 ? (n: number) => newTalk(lab, `first-${n}`) : async () => talk;
  const rounds: Round[] = [];
  for (let n = 1; n <= WARM_UP; n++) await round(lab, await next(n));
  for (let n = 1; n < turns; n++) rounds.push(await round(lab, await next(WARM_UP + n)));
  const last = await next(WARM_UP + turns);
  const before = lab.rows(last.id);
  rounds.push(await round(lab, last));
  const after = lab.rows(last.id);
  const rows = Object.fromEntries(Object.keys(after).map((table) => [table, after[table]! - before[table]!]));
  return { messages, rounds, rows };
}

async function resumeEvicted(lab: Lab, { sizes, cold }: Plan, sessions: Talk[][], say: Say): Promise<Cold[]> {
  say(`waiting until the objects of ${sessions.flat().length} sessions have left memory`);
  for (const talk of sessions.flat()) if (talk.messages > 0) await round(lab, talk);
  await lab.evicted(sessions.flat().map(({ id }) => id));
  await lab.connect();
  const results = sizes.map((messages): Cold => ({ absence: "evicted", messages, rounds: [] }));
  // One of each length after the other, so that whatever disturbs disturbs all lengths.
  for (let i = 0; i < cold; i++) {
    for (const [index, { rounds }] of results.entries()) rounds.push(await round(lab, sessions[index]![i]!));
  }
  return results;
}

async function resumeInNewProcesses(lab: Lab, sessions: Talk[], say: Say): Promise<Round[]> {
  const rounds: Round[] = [];
  for (const [index, talk] of sessions.entries()) {
    say(`new processes, ${index + 1} of ${sessions.length}`);
    await lab.stop();
    await lab.start();
    await lab.connect();
    rounds.push(await round(lab, talk));
  }
  return rounds;
}

/** Makes the sessions with two real turns each, and copies the second until the histories are as long as wanted. */
async function fill(lab: Lab, sessions: readonly Talk[], say: Say): Promise<void> {
  const total = sessions.reduce((sum, { messages }) => sum + messages, 0);
  say(`${sessions.length} sessions with ${total.toLocaleString("en")} messages`);
  await lab.start();
  for (const { id, messages } of sessions) {
    await lab.create(id);
    for (const at of messages === 0 ? [] : [0, 2]) await lab.turn(id, at, messageText(at));
  }
  await lab.stop();
  lab.fill(new Map(sessions.filter(({ messages }) => messages > 0).map(({ id, messages }) => [id, messages])));
  await lab.start();
}

/** The session's next turn, and the same request through the bare Worker. */
async function round(lab: Lab, talk: Talk): Promise<Round> {
  const done = await lab.round(talk.id, talk.messages, messageText(talk.messages));
  talk.messages += 2;
  return done;
}

async function newTalk(lab: Lab, id: string): Promise<Talk> {
  await lab.create(id);
  return { id, messages: 0 };
}

function talks(name: string, messages: number, count: number): Talk[] {
  return Array.from({ length: count }, (_, index) => ({ id: `${name}-${index + 1}`, messages }));
}

function nearest(sizes: readonly number[], wanted: number): number {
  return sizes.reduce((best, size) => (Math.abs(size - wanted) < Math.abs(best - wanted) ? size : best));
}
