import { describe, expect, it } from "vitest";
import { crash, createSession, getSession, messages, say, sentMessages } from "../support/session.ts";

describe("a session resumes as the selfsame agent", () => {
  it("keeps identity, prompt bytes and history over three cold starts", async () => {
    const session = await createSession();
    for (const count of [2, 4, 6]) {
      const turn = (await say(session.id, `message ${count / 2}`)).json;
      expect(turn.state).toBe("completed");
      const now = await getSession(session.id);
      expect(now).toMatchObject({ messageCount: count, identity: session.identity, fingerprint: session.fingerprint });
      expect(turn.promptSha256).toBe(session.promptSha256);
      await crash();
    }
    const sent = await sentMessages();
    expect(sent).toHaveLength(3);
    expect(new Set(sent.map(([system]) => system!.content)).size).toBe(1);
    expect(sent.map((list) => list.length - 1)).toEqual([1, 3, 5]);
  });

  it("sends what one request let the provider cache again, to the byte", async () => {
    const { id } = await createSession();
    for (const text of ["one", "two", "three"]) {
      await say(id, text);
      await crash();
    }
    const sent = await sentMessages();
    for (const [index, list] of sent.slice(1).entries()) {
      expect(list.slice(0, sent[index]!.length)).toEqual(sent[index]);
    }
  });

  it("carries reference and first-turn material once, in the epoch's first message", async () => {
    const { id } = await createSession();
    await say(id, "one");
    await crash();
    await say(id, "two");
    const [, second] = await sentMessages();
    expect(second![1]!.content).toContain("# Shop support: reference");
    expect(second![1]!.content.endsWith("one")).toBe(true);
    expect(second!.at(-1)!.content).toBe("two");
    expect((await messages(id)).map(({ text }) => text)).not.toContain("reference");
  });

  it("shows what was said and nothing else of a message", async () => {
    const { id } = await createSession();
    const turn = (await say(id, "hello")).json;
    const shown = await messages(id);
    expect(shown.map(({ role, text, status }) => [role, text, status])).toEqual([
      ["user", "hello", "complete"],
      ["assistant", turn.output!.text, "complete"],
    ]);
  });
});
