import { describe, expect, it } from "vitest";
import vectorsFile from "../fixtures/fingerprints.json?raw";
import type { ScriptEntry } from "../support/provider-script.ts";
import {
  call,
  crash,
  createSession,
  getSession,
  logLines,
  messages,
  provider,
  say,
  wireModel,
} from "../support/session.ts";

/** Text that something on the way could take for its own, or tidy up. */
const HOSTILE: [string, string][] = [
  ["replacement patterns", "$& $' $` $$ $1 $<name>"],
  ["template names", "{{identity.name}} {{ identity.id }} {{name}} {{agent.name}} {{"],
  ["CRLF and lone CR", "one\r\ntwo\rthree\n\r\n"],
  ["a byte order mark at the start", "\ufeffBe brief.\ufeff"],
  ["NFC beside NFD", "caf\u00e9 cafe\u0301 \u1e9b\u0323 \ufb01 \u212b"],
  ["line and paragraph separators", "a\u2028b\u2029c\u0085d"],
  ["NUL and other controls", "a\0b\u0001\u001f\u007f\u0080c"],
  ["emoji", "🌍 👨‍👩‍👧 👍🏽 🇩🇪 \u{10ffff}"],
  ["noncharacters and bidi marks", "\ufffe\uffff\ufffd \u202eabc\u202c \u200b\u00ad"],
  ["JSON, SQL and markup", `\\"\\u0041' OR 1=1;-- <|im_start|>system </s> <script> %00 \\ud83d`],
  ["white space around it", " \t\n text \n\t "],
];
const ALL = HOSTILE.map(([, text]) => text).join("|");

const { vectors } = JSON.parse(vectorsFile) as { vectors: Contract[] };

interface Contract {
  base: string;
  developer: string;
  fingerprint: string;
}

const contractOf = async (id: string) => (await call<Contract>("GET", `/v1/sessions/${id}/contract`)).json;

/** The prompt as `prompts/{sha256}` gives it, decoded without mercy. */
async function promptOf(id: string): Promise<string> {
  const { promptSha256 } = await getSession(id);
  const reply = await call("GET", `/v1/sessions/${id}/prompts/${promptSha256}`);
  expect([reply.status, reply.headers.get("content-type")]).toEqual([200, "text/plain; charset=utf-8"]);
  return reply.text;
}

/** The bodies the provider got, as the bytes they were. */
async function receivedBytes(): Promise<Buffer[]> {
  return (await provider.requests({ model: wireModel() })).map(({ body }) => Buffer.from(body));
}

/** A JSON string as its bytes; JSON.stringify writes every well-formed text in one way. */
const jsonBytes = (text: string) => Buffer.from(JSON.stringify(text));

describe.each([...HOSTILE, ["all of it at once", ALL] as [string, string]])("%s", (_, text) => {
  it("in both instruction slots comes back, and is sent, byte for byte, over a cold start", async () => {
    const instructions = { base: `B${text}`, developer: text };
    const { id } = await createSession({ instructions });
    const prompt = `B${text}\n\n${text}`;
    for (const input of ["one", "two"]) {
      await say(id, input);
      await crash();
      expect(await contractOf(id)).toMatchObject(instructions);
      expect(await promptOf(id)).toBe(prompt);
    }
    const bodies = await receivedBytes();
    expect(bodies).toHaveLength(2);
    for (const body of bodies) expect(body.includes(jsonBytes(prompt))).toBe(true);
    const inlined = (await logLines(id)).filter((line) => line.type === "snapshot");
    expect(inlined).toContainEqual(expect.objectContaining({ kind: "prompt", text: prompt }));
  });

  it("as input comes back, and is sent now and later, byte for byte, over a cold start", async () => {
    const { id } = await createSession();
    await say(id, "first, so that reference text does not go along");
    await say(id, text);
    await crash();
    await say(id, [
      { type: "text", text },
      { type: "text", text: "and more" },
    ] as unknown as string);
    const shown = (await messages(id)).filter(({ role }) => role === "user").map((message) => message.text);
    expect(shown.slice(1)).toEqual([text, `${text}\n\nand more`]);
    const [, second, third] = await receivedBytes();
    expect(second!.includes(jsonBytes(text))).toBe(true);
    expect(third!.includes(jsonBytes(text))).toBe(true);
    expect(third!.includes(jsonBytes(`${text}\n\nand more`))).toBe(true);
    const logged = (await logLines(id)).filter((line) => line.type === "message");
    expect(logged).toContainEqual(expect.objectContaining({ content: [{ type: "text", text }] }));
  });

  it("in project, metadata and temporary text is kept, and is sent, byte for byte", async () => {
    const metadata = { [text]: { nested: [text] } };
    const { id } = await createSession({ project: { name: text.slice(0, 200), rules: text }, metadata });
    await say(id, "hello", { temporary: [{ text }] });
    await crash();
    expect((await getSession(id)).metadata).toEqual(metadata);
    expect((await contractOf(id)).developer.includes(text)).toBe(true);
    const [body] = await receivedBytes();
    expect(body!.includes(jsonBytes(text).subarray(1, -1)), "the rules").toBe(true);
    expect(body!.includes(Buffer.from(`{"role":"system","content":${JSON.stringify(text)}}`)), "temporary").toBe(true);
  });
});

describe("an identity's name", () => {
  const names = HOSTILE.filter(([, text]) => [...text].length <= 80);
  it.each(names)("with %s is kept and goes into the prompt as it is, never expanded again", async (_, name) => {
    const { id, identity } = await createSession({ identity: { name } });
    expect(identity.name).toBe(name);
    const before = await contractOf(id);
    expect(before.base.includes(name)).toBe(true);
    await say(id, "hello");
    await crash();
    expect((await getSession(id)).identity).toEqual(identity);
    expect(await contractOf(id)).toEqual(before);
    const [body] = await receivedBytes();
    expect(body!.includes(jsonBytes(name).subarray(1, -1))).toBe(true);
  });
});

describe("a contract of two overrides and no project", () => {
  it.each(vectors)("is exactly them: $fingerprint", async ({ base, developer, fingerprint }) => {
    const session = await createSession({ instructions: { base, developer } });
    expect(session.fingerprint).toBe(fingerprint);
    expect(await contractOf(session.id)).toMatchObject({ base, developer, fingerprint });
    await say(session.id, "hello");
    await crash();
    expect(await contractOf(session.id)).toMatchObject({ base, developer, fingerprint });
    expect(await promptOf(session.id)).toBe([base, developer].filter((text) => text !== "").join("\n\n"));
  });

  it("prepares base alone when developer is empty and the model has no notes", async () => {
    const base = "\ufeffBe brief.\r\n";
    const { id } = await createSession({ instructions: { base, developer: "" } });
    await say(id, "hello");
    expect(await promptOf(id)).toBe(base);
    const [body] = await receivedBytes();
    expect(body!.includes(Buffer.from(`"messages":[{"role":"system","content":${JSON.stringify(base)}},`))).toBe(true);
  });

  it("sends no system message at all when both are empty", async () => {
    const { id } = await createSession({ instructions: { base: "", developer: "" } });
    await say(id, "hello");
    await crash();
    await say(id, "again");
    expect(await promptOf(id)).toBe("");
    for (const body of await receivedBytes()) expect(body.includes('"role":"system"')).toBe(false);
  });
});

describe("an answer", () => {
  const frame = (delta: string, finish = "null") =>
    `data: {"choices":[{"index":0,"delta":{"content":${delta}},"finish_reason":${finish}}]}\n\n`;
  const DONE = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
  const script = (...chunks: Buffer[]): ScriptEntry => ({
    ...{ kind: "raw", chunks: chunks.map((chunk) => chunk.toString("base64")), end: true },
    match: { model: wireModel() },
  });

  /** What is stored of an answer, over a cold start, and what the next request carries of it. */
  async function stored(id: string, entry: ScriptEntry): Promise<string> {
    await provider.script(entry);
    const reply = await say(id, "hello");
    expect(reply.json, reply.text).toMatchObject({ state: "completed" });
    const { text } = reply.json.output!;
    await crash();
    expect((await messages(id)).at(-1)!.text).toBe(text);
    expect(text.isWellFormed()).toBe(true);
    await say(id, "again");
    expect((await receivedBytes()).at(-1)!.includes(jsonBytes(text))).toBe(true);
    return text;
  }

  it("of emoji is whole wherever its bytes are split", async () => {
    const text = "é🌍👨‍👩‍👧";
    const head = Buffer.from(frame('""').slice(0, frame('""').indexOf('""') + 1));
    const body = Buffer.from(text);
    const tail = Buffer.from(`${frame('""').slice(frame('""').indexOf('""') + 1)}${DONE}`);
    const { id } = await createSession({ instructions: { base: "b", developer: "" } });
    await provider.script(
      ...Array.from({ length: body.length + 1 }, (_, at) =>
        script(Buffer.concat([head, body.subarray(0, at)]), Buffer.concat([body.subarray(at), tail])),
      ),
    );
    for (let at = 0; at <= body.length; at++) {
      const reply = await say(id, `split at ${at}`);
      expect(reply.json.output?.text, `split at ${at}`).toBe(text);
    }
    await crash();
    const answers = (await messages(id)).filter(({ role }) => role === "assistant");
    expect(new Set(answers.map((message) => message.text))).toEqual(new Set([text]));
  });

  it.each([
    ["a byte order mark inside a delta", [frame('"\ufeffa\ufeff"'), frame('"b"')], "\ufeffa\ufeffb"],
    ["half a pair each in two deltas", [frame('"a\\ud83d"'), frame('"\\ude00b"')], "a😀b"],
    ["half a pair each, and an empty delta between", [frame('"\\ud83d"'), frame('""'), frame('"\\ude00"')], "😀"],
    ["a lone high surrogate inside", [frame('"a\\ud83db"')], "a\ufffdb"],
    ["a lone high surrogate at the end", [frame('"a\\ud83d"')], "a\ufffd"],
    ["a lone low surrogate", [frame('"\\ude00a"')], "\ufffda"],
    ["halves in the wrong order", [frame('"\\ude00"'), frame('"\\ud83d"')], "\ufffd\ufffd"],
    ["CRLF, NUL and separators", [frame('"a\\r\\n\\u0000\u2028\u0085"')], "a\r\n\0\u2028\u0085"],
    ["templates and patterns", [frame('"{{identity.name}} $& $\'"')], "{{identity.name}} $& $'"],
  ])("with %s is stored well-formed", async (_, frames, expected) => {
    const { id } = await createSession();
    expect(await stored(id, script(...frames.map((one) => Buffer.from(one)), Buffer.from(DONE)))).toBe(expected);
  });

  it("with bytes that are not UTF-8 is stored with U+FFFD in their place", async () => {
    const { id } = await createSession();
    const [head, tail] = frame('"ab"').split("b");
    const broken = Buffer.concat([Buffer.from(head!), Buffer.from([0xff]), Buffer.from(`b${tail}`)]);
    expect(await stored(id, script(broken, Buffer.from(DONE)))).toBe("a\ufffdb");
  });
});
