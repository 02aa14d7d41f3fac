/**
 * A guard for Node processes under test: any connection that would leave this machine throws, and says so on stderr
 * even where the error is swallowed. Load it with `NODE_OPTIONS=--import=<this file>`; child processes inherit it.
 * It guards Node's own sockets only: for other processes see e2e/support/remote-addresses.ts.
 */
import dgram from "node:dgram";
import net from "node:net";

/** Whether a host, as a caller gives it, is this machine. Nothing given means `localhost`. */
export function isLoopbackHost(host: string | null | undefined): boolean {
  if (host === undefined || host === null || host === "") return true;
  const name = host.toLowerCase().replace(/^\[|\]$/g, "");
  if (name === "localhost" || name.endsWith(".localhost") || name === "::1") return true;
  return /^(::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(name);
}

class NotLoopbackError extends Error {
  override name = "NotLoopbackError";
  readonly code = "ERR_NOT_LOOPBACK";
}

function refuse(target: string): never {
  process.stderr.write(`not loopback: ${target} (process ${process.pid})\n`);
  throw new NotLoopbackError(`not loopback: ${target}`);
}

interface Target {
  host?: string | undefined;
  port?: number | string | undefined;
  path?: string | null | undefined;
}

/** Where `socket.connect(…)` goes; Node itself passes its arguments as one normalized list. */
function targetOf(args: readonly unknown[]): Target {
  const [first, second] = args;
  if (Array.isArray(first)) return targetOf(first);
  if (typeof first === "object" && first !== null) return first as Target;
  if (typeof first === "string" && !/^\d+$/.test(first)) return { path: first };
  return { port: first as number, host: typeof second === "string" ? second : undefined };
}

type AnyMethod = (this: unknown, ...args: unknown[]) => unknown;

const connect = net.Socket.prototype.connect as AnyMethod;
net.Socket.prototype.connect = function guardedConnect(this: net.Socket, ...args: unknown[]) {
  const { host, port, path } = targetOf(args);
  if (!path && !isLoopbackHost(host)) refuse(`${host}:${port}`);
  return connect.apply(this, args);
} as typeof net.Socket.prototype.connect;

/** `send(msg, [offset, length,] [port] [, address] [, callback])`: the address is the last text after the message. */
const send = dgram.Socket.prototype.send as AnyMethod;
dgram.Socket.prototype.send = function guardedSend(this: dgram.Socket, ...args: unknown[]) {
  const address = args.slice(1).findLast((value) => typeof value === "string");
  if (!isLoopbackHost(address as string | undefined)) refuse(`udp ${address}`);
  return send.apply(this, args);
} as typeof dgram.Socket.prototype.send;

const connectDatagram = dgram.Socket.prototype.connect as AnyMethod;
dgram.Socket.prototype.connect = function guardedDatagram(this: dgram.Socket, ...args: unknown[]) {
  if (typeof args[1] === "string" && !isLoopbackHost(args[1])) refuse(`udp ${args[1]}:${args[0]}`);
  return connectDatagram.apply(this, args);
} as typeof dgram.Socket.prototype.connect;
