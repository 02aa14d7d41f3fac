/** The demo itself: starts the service, talks, kills it, edits what the agent is told, and starts again. */
import { bareEnv, type Service, startService } from "../service.ts";
import { createWorkspace, type Workspace } from "../workspace.ts";
import { DemoClient, reportedPrompt } from "./client.ts";
import { type RulesHook, startRulesHook } from "./hook.ts";
import type { Mode, Run } from "./judge.ts";

const SESSION = "demo";
const PROMPT_FILES = ["AGENTS.md", "IDENTITY.md", "AGENTS.md"] as const;

export class Demo {
  readonly #mode: Mode;
  readonly #workspace: Workspace;
  readonly #say: (text: string) => void;
  #hook: RulesHook | null = null;
  #service: Service | null = null;
  /** The session's exported log, after the last run. */
  log = "";

  /** `say` hears one line about every step. */
  constructor(mode: Mode, say: (text: string) => void) {
    this.#mode = mode;
    this.#say = say;
    this.#workspace = createWorkspace();
  }

  /** One run more than kills. The service is down afterwards; its storage is still there until `close`. */
  async run(kills: number): Promise<Run[]> {
    await this.#prepare();
    const runs: Run[] = [];
    for (let n = 1; n <= kills + 1; n++) {
      if (n > 1) await this.#killAndEdit(n - 1);
      runs.push(await this.#talk(n));
    }
    await this.#killed();
    return runs;
  }

  /** What the service printed, for when something went wrong. */
  serviceOutput(): string {
    return this.#service?.output() ?? "";
  }

  /** Ends the service and the hook, and removes the copy. May be called twice. */
  async close(keep: boolean): Promise<void> {
    await this.#killed();
    await this.#hook?.close();
    this.#hook = null;
    if (keep) this.#say(`kept: ${this.#workspace.path}`);
    else this.#workspace.remove();
  }

  /** The demo's copy of the agent gets a rules hook, and for the control the policy that follows every change. */
  async #prepare(): Promise<void> {
    this.#hook = await startRulesHook("- Rules, edition 1: answer in English.");
    const { url } = this.#hook;
    this.#workspace.edit("prompts/agents/concierge/agent.json", (text) => {
      const policy = this.#mode === "unfrozen" ? { instructions: "follow" } : {};
      return JSON.stringify({ ...(JSON.parse(text) as object), ...policy, hook: { url, required: true } }, null, 2);
    });
  }

  async #talk(n: number): Promise<Run> {
    const { root, state, home } = this.#workspace;
    const service = await startService({ root, state, env: bareEnv(home) });
    this.#service = service;
    const client = new DemoClient(service.url);
    if (n === 1) await client.createSession({ agent: "concierge", id: SESSION });
    // Asked before the turn: under the control's policy the turn adopts what had drifted.
    const { drift } = await client.session(SESSION);
    const turn = await client.turn(SESSION, `This is message ${n}.`);
    const session = await client.session(SESSION);
    this.log = await client.log(SESSION);
    this.#say(
      `run ${n}: started as process ${service.group}, sent message ${n}, session has ${session.messageCount} messages`,
    );
    return {
      ...{ boot: service.boot, identity: session.identity.id, fingerprint: session.fingerprint },
      ...{ promptSent: reportedPrompt(turn.output.text), promptSaid: turn.promptSha256 },
      ...{ messages: session.messageCount, drift: drift !== null, hookCalls: this.#hook?.calls ?? 0 },
    };
  }

  async #killAndEdit(kill: number): Promise<void> {
    const { processes = [] } = this.#service ?? {};
    await this.#killed();
    const file = `prompts/agents/concierge/${PROMPT_FILES[(kill - 1) % PROMPT_FILES.length]}`;
    this.#workspace.edit(file, (text) => `${text.trimEnd()}\n\nEdit ${kill}: from now on you are somebody else.\n`);
    if (this.#hook !== null) this.#hook.rules = `- Rules, edition ${kill + 1}: answer in Latin.`;
    const count = processes.length > 0 ? ` to ${processes.length} processes` : "";
    this.#say(`SIGKILL${count}; edited ${file} and the hook's rules`);
  }

  async #killed(): Promise<void> {
    const service = this.#service;
    this.#service = null;
    await service?.kill();
  }
}
