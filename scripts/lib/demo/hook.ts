/** The demo's rules hook: an HTTP service on the loopback whose answer can be changed, and that counts its calls. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface RulesHook {
  url: string;
  /** What it answers from now on. */
  rules: string;
  /** How often it was asked. */
  calls: number;
  close(): Promise<void>;
}

export async function startRulesHook(rules: string): Promise<RulesHook> {
  const server = createServer((request, response) => {
    request.resume();
    hook.calls += 1;
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ rules: hook.rules }));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  const hook: RulesHook = {
    url: `http://127.0.0.1:${port}/rules`,
    rules,
    calls: 0,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
  return hook;
}
