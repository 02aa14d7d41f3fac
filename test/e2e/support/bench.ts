/**
 * One bench a test file: a workspace, a fake provider, and the real service in it, started, killed and started again.
 * Everything it starts it also ends; at the end no process may have talked to anything but this machine.
 */
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { groupMembers } from "../../../scripts/lib/processes.ts";
import { bareEnv, type Service, type ServiceOptions, startService } from "../../../scripts/lib/service.ts";
import { createWorkspace, type Workspace } from "../../../scripts/lib/workspace.ts";
import { type FakeProvider, startProvider } from "../../support/provider.ts";
import { Api } from "./api.ts";
import { RemoteAddresses } from "./remote-addresses.ts";

export const MODEL = "openai/gpt-test";

const GUARD = join(import.meta.dirname, "../../support/loopback.ts");

export class Bench {
  readonly workspace: Workspace;
  readonly provider: FakeProvider;
  /** The `boot` of every start so far. */
  readonly boots: string[] = [];
  readonly #watches: RemoteAddresses[] = [];
  readonly #outputs: string[] = [];
  #service: Service | null = null;

  private constructor(workspace: Workspace, provider: FakeProvider) {
    this.workspace = workspace;
    this.provider = provider;
  }

  static async open(): Promise<Bench> {
    return new Bench(createWorkspace(), await startProvider());
  }

  get service(): Service {
    if (this.#service === null) throw new Error("no service runs");
    return this.#service;
  }

  get api(): Api {
    return new Api(this.service.url);
  }

  get state(): string {
    return this.workspace.state;
  }

  /** Everything printed by every service so far. */
  printed(): string {
    return [...this.#outputs, this.#service?.output() ?? ""].join("\n---- another start\n");
  }

  /** Starts the service on the workspace's storage. */
  async start(options: Partial<ServiceOptions> = {}): Promise<Service> {
    const service = await startService({
      ...{ root: this.workspace.root, state: this.workspace.state, env: guardedEnv(this.workspace.home) },
      vars: { OPENAI_BASE_URL: this.provider.url },
      ...options,
    });
    this.#service = service;
    this.boots.push(service.boot);
    this.#watches.push(new RemoteAddresses(service.group));
    return service;
  }

  /** SIGKILL to every process of the service, and the proof that it is gone. */
  async kill(): Promise<void> {
    const { service } = this;
    this.#leave(service);
    const workerd = service.processes.filter(({ name }) => name === "workerd");
    expect(workerd.length, "workerd was among the processes").toBeGreaterThan(0);
    await service.kill();
    await expectGone(service);
  }

  async restart(): Promise<Service> {
    await this.kill();
    return this.start();
  }

  /** Ends everything, then fails if anything went beyond this machine. */
  async close(): Promise<void> {
    if (this.#service !== null) {
      const { service } = this;
      this.#leave(service);
      await service.stop();
      await expectGone(service);
    }
    await this.provider.close();
    this.workspace.remove();
    for (const watch of this.#watches) {
      expect([...watch.seen], "addresses beyond this machine").toEqual([]);
      expect(watch.sockets, "sockets that were looked at").toBeGreaterThan(0);
    }
    expect(this.#outputs.join("\n")).not.toContain("not loopback:");
  }

  #leave(service: Service): void {
    this.#watches.at(-1)?.look();
    this.#watches.at(-1)?.stop();
    this.#outputs.push(service.output());
    this.#service = null;
  }
}

/** A bench for a test file, prepared before its first test and closed after its last; a failing test shows the output. */
export function useBench(prepare: (bench: Bench) => Promise<void> = async () => {}): () => Bench {
  let bench: Bench | null = null;
  beforeAll(async () => {
    bench = await Bench.open();
    await prepare(bench);
  });
  afterEach(({ task }) => {
    if (task.result?.state === "fail") console.error(`the service printed:\n${bench?.printed()}`);
  });
  afterAll(() => bench?.close());
  return () => {
    if (bench === null) throw new Error("the bench is not open");
    return bench;
  };
}

/** The environment of processes under test: empty but for PATH and HOME, and guarded against other machines. */
export function guardedEnv(home: string): NodeJS.ProcessEnv {
  return { ...bareEnv(home), NODE_OPTIONS: `--import=${GUARD}` };
}

/** No process of the service lives, and its port refuses. */
export async function expectGone({ group, processes, port }: Service): Promise<void> {
  expect(groupMembers(group), "processes of the group").toEqual([]);
  expect(
    processes.filter(({ pid }) => isAlive(pid)),
    "processes by pid",
  ).toEqual([]);
  expect(await connectOutcome(port), "the port").toBe("ECONNREFUSED");
}

export function isAlive(pid: number): boolean {
  try {
    return !/\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}

/** What connecting to a port of 127.0.0.1 comes to: `connected`, or the error's code. */
export function connectOutcome(port: number): Promise<string> {
  return new Promise((done) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => done("connected"));
    socket.once("error", (error: NodeJS.ErrnoException) => done(error.code ?? error.message));
    socket.once("connect", () => socket.destroy());
  });
}
