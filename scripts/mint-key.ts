/** `npm run mint-key`: an API key for a tenant, signed with SIGNING_KEY. Nothing is stored anywhere: print it and it is. */
import { randomBytes } from "node:crypto";
import { realpathSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { mintKey, SCOPES, type Scope, TENANT } from "../src/http/keys.ts";
import type { SigningKeys } from "../src/http/signing.ts";
import { MAKE_SIGNING_KEY, readSigningKeys, signingKeySources } from "./lib/signing-key.ts";

const HELP = `Usage: npm run --silent mint-key -- --tenant T --scopes S --ttl D
       npm run --silent mint-key -- --new-key

Prints an API key (a signed token) alone on standard output. It is stored nowhere and cannot be taken back one by one:
it ends with its time, or when its signing key is taken out of SIGNING_KEY.

  --tenant T   whose sessions the key opens: lower-case letters, digits and -, at most 63
  --scopes S   with commas between, or all: ${SCOPES.join(",")}
  --ttl D      how long it is good: a number and s, m, h or d, such as 90d (at most 3650d)
  --new-key    print a fresh SIGNING_KEY instead
  --help       this text

SIGNING_KEY is taken from the environment, else from .dev.vars (or .env) beside package.json. Of several keys the first
one signs. Exit status: 0 printed, 1 not.
`;

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 60 * 60, d: 24 * 60 * 60 };
const MAX_TTL_SECONDS = 3650 * UNIT_SECONDS.d!;

export interface MintContext {
  env: Record<string, string | undefined>;
  /** The folder of package.json. */
  root: string;
  /** Milliseconds since 1970. */
  now: number;
}

/** What the command prints, and where. */
export type Minted = { ok: true; out: string } | { ok: false; message: string };

/** Runs the command without touching the process. */
export async function mint(args: readonly string[], context: MintContext): Promise<Minted> {
  const parsed = parse(args);
  if (typeof parsed === "string") return refuse(`${parsed}\nnpm run mint-key -- --help shows the options`);
  if (parsed.help) return { ok: true, out: HELP };
  const { tenant, scopes: names, ttl } = parsed;
  if (parsed["new-key"]) {
    if ([tenant, names, ttl].some((value) => value !== undefined)) return refuse("--new-key goes alone");
    return { ok: true, out: `${randomBytes(32).toString("base64url")}\n` };
  }
  if (tenant === undefined || !TENANT.test(tenant)) {
    return refuse(option("tenant", tenant, "lower-case letters, digits and -, not beginning with -, at most 63"));
  }
  const scopes = parseScopes(names);
  if (scopes === null) return refuse(option("scopes", names, `all, or with commas between: ${SCOPES.join(", ")}`));
  const seconds = parseTtl(ttl);
  if (seconds === null) return refuse(option("ttl", ttl, "a number and s, m, h or d, such as 90d; at most 3650d"));

  const keys = loadKeys(context);
  if (typeof keys === "string") return refuse(keys);
  return { ok: true, out: `${await mintKey(keys, { tenant, scopes }, seconds, context.now)}\n` };
}

function refuse(message: string): Minted {
  return { ok: false, message };
}

function option(name: string, value: string | undefined, expected: string): string {
  return `--${name}${value === undefined ? " is missing" : ` ${JSON.stringify(value)} is none`}: ${expected}`;
}

function parse(args: readonly string[]) {
  const text = { type: "string" } as const;
  const flag = { type: "boolean", default: false } as const;
  try {
    const options = { tenant: text, scopes: text, ttl: text, "new-key": flag, help: { ...flag, short: "h" } } as const;
    return parseArgs({ args: [...args], options, strict: true }).values;
  } catch (error) {
    return (error as Error).message;
  }
}

function parseScopes(text: string | undefined): Scope[] | null {
  if (text === "all") return [...SCOPES];
  const names = (text ?? "").split(",").map((name) => name.trim());
  if (!names.every((name) => SCOPES.some((scope) => scope === name))) return null;
  return SCOPES.filter((scope) => names.includes(scope));
}

/** Seconds, or `null` for what is no time or too long. */
function parseTtl(text: string | undefined): number | null {
  const [, count = "", unit = ""] = /^([1-9]\d{0,9})([smhd])$/.exec(text ?? "") ?? [];
  const seconds = Number(count) * (UNIT_SECONDS[unit] ?? 0);
  return seconds >= 1 && seconds <= MAX_TTL_SECONDS ? seconds : null;
}

/** The signing keys, or in words why there are none. */
function loadKeys({ env, root }: MintContext): SigningKeys | string {
  const [source] = signingKeySources(env, root);
  if (source !== undefined) return readSigningKeys(source);
  return `There is no SIGNING_KEY: not in the environment and not in ${join(root, ".dev.vars")}.\n${MAKE_SIGNING_KEY}`;
}

async function main(): Promise<void> {
  const minted = await mint(process.argv.slice(2), {
    ...{ env: process.env, root: resolve(import.meta.dirname, ".."), now: Date.now() },
  });
  if (minted.ok) process.stdout.write(minted.out);
  else {
    process.stderr.write(`${minted.message.trimEnd()}\n`);
    process.exitCode = 1;
  }
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === import.meta.filename) await main();
