/** Which addresses beyond this machine the processes of a group talk to, seen from outside through /proc (Linux only). */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { groupMembers } from "../../../scripts/lib/processes.ts";

const TABLES = ["tcp", "tcp6", "udp", "udp6"] as const;

/** A socket with a peer, as a line of /proc/net/tcp and its like has it. */
export interface Peer {
  inode: string;
  address: string;
  port: number;
}

/** Watches a group several times a second until `stop`. What is shorter than that can be missed: see loopback.ts. */
export class RemoteAddresses {
  readonly seen = new Set<string>();
  /** How often it has looked at a socket that has a peer: 0 at the end means that it saw nothing at all. */
  sockets = 0;
  readonly #group: number;
  readonly #isAllowed: (address: string) => boolean;
  readonly #timer: NodeJS.Timeout;

  constructor(group: number, isAllowed: (address: string) => boolean = isLoopbackAddress) {
    this.#group = group;
    this.#isAllowed = isAllowed;
    this.#timer = setInterval(() => this.look(), 150);
    this.#timer.unref();
    this.look();
  }

  look(): void {
    for (const { pid, name } of groupMembers(this.#group) ?? []) {
      const inodes = socketInodes(pid);
      for (const table of TABLES) {
        for (const { inode, address, port } of parsePeers(readOrEmpty(`/proc/${pid}/net/${table}`))) {
          if (!inodes.has(inode)) continue;
          this.sockets += 1;
          if (!this.#isAllowed(address)) this.seen.add(`${name} ${table} ${address}:${port}`);
        }
      }
    }
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

/** The sockets with a peer in the text of /proc/net/{tcp,udp}{,6}. */
export function parsePeers(text: string): Peer[] {
  const peers = text
    .split("\n")
    .slice(1)
    .flatMap((line): Peer[] => {
      const fields = line.trim().split(/\s+/);
      const [hex = "", port = ""] = fields[2]?.split(":") ?? [];
      const inode = fields[9];
      if (inode === undefined) return [];
      return [{ inode, address: address(hex), port: Number.parseInt(port, 16) }];
    });
  return peers.filter(({ port }) => port !== 0);
}

/** The kernel prints 32-bit words as the machine holds them: little-endian here, and everywhere this runs. */
function address(hex: string): string {
  const bytes = hex.match(/.{8}/g)?.flatMap((word) => [...Buffer.from(word, "hex")].reverse()) ?? [];
  if (bytes.length === 4) return bytes.join(".");
  const mapped = bytes.slice(0, 12).every((byte, index) => byte === (index < 10 ? 0 : 255));
  if (mapped) return bytes.slice(12).join(".");
  return bytes
    .map((byte, index) => byte.toString(16).padStart(2, "0") + (index % 2 === 1 && index < 15 ? ":" : ""))
    .join("");
}

export function isLoopbackAddress(text: string): boolean {
  return /^127\./.test(text) || text === "0000:0000:0000:0000:0000:0000:0000:0001";
}

function socketInodes(pid: number): Set<string> {
  const folder = `/proc/${pid}/fd`;
  const inodes = new Set<string>();
  try {
    for (const fd of readdirSync(folder)) {
      const inode = /^socket:\[(\d+)\]$/.exec(linkOrEmpty(`${folder}/${fd}`))?.[1];
      if (inode !== undefined) inodes.add(inode);
    }
  } catch {
    // The process has ended.
  }
  return inodes;
}

function linkOrEmpty(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
