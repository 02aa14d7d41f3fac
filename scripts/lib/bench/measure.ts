/** The order of everything: sessions are made and filled, then warm turns, resumed objects, and new processes. */
import { messageText } from "./conversation.ts";
import type { Lab, Round } from "./lab.ts";
import type { Plan } from "./options.ts";

/** Turns before anything counts: connections open, code compiled. */
const WARM_UP = 20;
/** And of every session: its history in memory, and rendered once. */
const SESSION_WARM_UP = 2;

/** A history grows by two messages a turn: after growing by this share, the next session of that length is taken. */
const MOST_GROWN = 0.1;

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
  const warm = plan.sizes.map((size) => talks(`warm-${size}`, size, Math.ceil(plan.turns / turnsEach(size))));
  const evicted = plan.sizes.map((size) => talks(`evicted-${size}`, size, plan.cold));
  const restarted = talks("restarted", restartSize, plan.restarts);
  // Warm sessions without a history are created one by one, each just before its turn.
  const filled = warm.flat().filter(({ messages }) => messages > 0);
  await fill(lab, [...filled, ...evicted.flat(), ...restarted], say);

  const results: Results = { warm: [], cold: [] };
  for (let n = 1; n <= WARM_UP; n++) await round(lab, await newTalk(lab, `warm-up-${n}`));
  for (const [index, messages] of plan.sizes.entries()) {
    say(`${plan.turns} warm turns at ${messages.toLocaleString("en")} messages`);
    results.warm.push(await warmTurns(lab, plan.turns, messages, warm[index]!));
  }
  if (plan.cold > 0) results.cold.push(...(await resumeEvicted(lab, plan, evicted, say)));
  if (plan.restarts > 0) {
    const rounds = await resumeInNewProcesses(lab, restarted, say);
    results.cold.push({ absence: "new process", messages: restartSize, rounds });
  }
  return results;
}

async function warmTurns(lab: Lab, turns: number, messages: number, sessions: Talk[]): Promise<Warm> {
  const rounds: Round[] = [];
  let rows = {};
  for (const [index, session] of sessions.entries()) {
    // Without a history a turn is a session's first one; its object is in memory since it was created.
    const talk = messages === 0 ? await newTalk(lab, `first-${index + 1}`) : session;
    for (let n = 0; messages > 0 && n < SESSION_WARM_UP; n++) await round(lab, talk);
    const count = Math.min(turnsEach(messages), turns - rounds.length);
    for (let n = 0; n < count; n++) {
      const last = rounds.length === turns - 1;
      const before = last ? lab.rows(talk.id) : {};
      rounds.push(await round(lab, talk));
      if (last) rows = difference(before, lab.rows(talk.id));
    }
  }
  return { messages, rounds, rows };
}

/** Measured turns of one session whose history begins with `messages`. */
function turnsEach(messages: number): number {
  return Math.max(1, Math.floor((messages * MOST_GROWN) / 2));
}

function difference(before: Record<string, number>, after: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(after).map(([name, value]) => [name, value - (before[name] ?? 0)]));
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
