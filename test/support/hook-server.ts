/** Prompt hooks on loopback, one a path; what they were asked is kept by the query's `id`. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export interface HookServer {
  /** Ends in `/`: add the kind of answer and `?id=`. */
  url: string;
  close(): Promise<void>;
}

/**
 * `/rules` answers `{"rules": "Rule <n>."}`, counting the calls of an id; `/status` 500; `/redirect` 302; `/shape` JSON
 * of another shape; `/text` no JSON; `/surrogate` a lone surrogate; `/big` too much; `/silent` nothing at all.
 * `GET /asked?id=` gives the questions, in order.
 */
export async function startHookServer(): Promise<HookServer> {
  const asked = new Map<string, unknown[]>();
  const server: Server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://hook");
    const id = searchParams.get("id") ?? "";
    const known = asked.get(id) ?? [];
    if (pathname === "/asked") return response.end(JSON.stringify(known));
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    asked.set(id, [...known, JSON.parse(Buffer.concat(chunks).toString())]);
    if (pathname === "/silent") return;
    if (pathname === "/status") response.statusCode = 500;
    if (pathname === "/redirect") response.writeHead(302, { location: "/rules" });
    response.end(answer(pathname, known.length + 1));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function answer(pathname: string, n: number): string {
  if (pathname === "/shape") return JSON.stringify({ rules: 7 });
  if (pathname === "/text") return "no JSON";
  if (pathname === "/surrogate") return '{"rules":"\\ud800"}';
  if (pathname === "/big") return JSON.stringify({ rules: "x".repeat(300 * 1024) });
  return JSON.stringify({ rules: `Rule ${n}.` });
}
