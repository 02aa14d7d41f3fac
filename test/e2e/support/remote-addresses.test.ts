/** Failure class: the watch over connections sees nothing, or takes another machine for this one. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { killGroup, ownGroup } from "../../../scripts/lib/processes.ts";
import { isLoopbackAddress, parsePeers, RemoteAddresses } from "./remote-addresses.ts";
import { eventually } from "./wait.ts";

const HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
const line = (remote: string, inode: number) =>
  `   0: 0100007F:1F90 ${remote} 01 00000000:00000000 00:00000000 00000000     0        0 ${inode} 1\n`;

test("lines of /proc/net", () => {
  const text = HEAD + line("010200C0:01BB", 1) + line("0100007F:1F91", 2) + line("00000000:0000", 3);
  expect(parsePeers(text)).toEqual([
    { inode: "1", address: "192.0.2.1", port: 443 },
    { inode: "2", address: "127.0.0.1", port: 8081 },
  ]);
  const six =
    HEAD + line("B80D0120000000000000000001000000:0050", 4) + line("0000000000000000FFFF00000100007F:0050", 5);
  expect(
    parsePeers(six + line("00000000000000000000000001000000:0050", 6)).map(({ address }) => [
      address,
      isLoopbackAddress(address),
    ]),
  ).toEqual([
    ["2001:0db8:0000:0000:0000:0000:0000:0001", false],
    ["127.0.0.1", true],
    ["0000:0000:0000:0000:0000:0000:0000:0001", true],
  ]);
});

test("a connection of a child's child is seen", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const script = `require("net").connect(${port}, "127.0.0.1"); setInterval(() => {}, 1000)`;
  const outer = `require("child_process").spawn(process.execPath, ["-e", ${JSON.stringify(script)}]); setInterval(() => {}, 1000)`;
  const group = ownGroup(spawn(process.execPath, ["-e", outer], { detached: true, stdio: "ignore", env: {} }));
  const watch = new RemoteAddresses(group, () => false);
  try {
    await eventually("it is seen", 20_000, () => watch.seen.size > 0);
    expect([...watch.seen]).toEqual([expect.stringMatching(new RegExp(`tcp 127\\.0\\.0\\.1:${port}$`))]);
  } finally {
    watch.stop();
    await killGroup(group);
    server.close();
    server.closeAllConnections();
  }
});
