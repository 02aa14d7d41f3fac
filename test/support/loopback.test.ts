/** Failure class: a process under test reaches beyond this machine, or is kept from reaching itself. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

/** Runs a script in a Node process with the guard loaded as the suites load it. */
function guarded(script: string) {
  const run = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
    timeout: 20_000,
    env: { NODE_OPTIONS: `--import=${join(import.meta.dirname, "loopback.ts")}` },
  });
  return { out: run.stdout.trim(), err: run.stderr };
}

test("net, http, https, fetch and datagrams to other machines throw, and say so on stderr", { timeout: 30_000 }, () => {
  const { out, err } = guarded(`
    import net from "node:net"; import https from "node:https"; import dgram from "node:dgram";
    const outcome = async (attempt) => {
      try { await attempt(); return "went out"; } catch (error) { return (error.cause ?? error).code; }
    };
    const socket = dgram.createSocket("udp4");
    console.log(JSON.stringify([
      await outcome(() => net.connect(9, "192.0.2.1")),
      await outcome(() => net.connect({ port: 9, host: "example.invalid" })),
      await outcome(() => new Promise((_, reject) => https.get("https://192.0.2.1/").on("error", reject))),
      await outcome(() => fetch("http://192.0.2.1/")),
      await outcome(() => fetch("https://registry.example.invalid/x")),
      await outcome(() => socket.send("x", 9, "192.0.2.1")),
    ]));
    socket.close();
  `);
  expect(JSON.parse(out), err).toEqual(Array(6).fill("ERR_NOT_LOOPBACK"));
  expect(err).toContain("not loopback: 192.0.2.1:9 ");
  expect(err).toContain("not loopback: registry.example.invalid:443 ");
});

test("this machine stays reachable, by address, by name and over a socket file", { timeout: 30_000 }, () => {
  const { out, err } = guarded(`
    import http from "node:http"; import net from "node:net"; import { once } from "node:events";
    const server = http.createServer((_, response) => response.end("ok")).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address();
    const answers = [await (await fetch("http://127.0.0.1:" + port)).text(), await (await fetch("http://localhost:" + port)).text()];
    const plain = net.connect(port);
    await once(plain, "connect").then(() => answers.push("net"));
    plain.destroy();
    const [missing] = await once(net.connect("/no/such/socket"), "error");
    console.log([...answers, missing.code].join(" "));
    server.close(); server.closeAllConnections();
  `);
  expect([out, err]).toEqual(["ok ok net ENOENT", ""]);
});
