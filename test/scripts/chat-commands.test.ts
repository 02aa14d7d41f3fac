/** The other commands against a service: what is sent, what is shown, and that an error changes nothing. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ScriptedChat } from "./support/scripted-chat.ts";

let t: ScriptedChat;
beforeEach(async () => {
  t = await new ScriptedChat().start();
});
afterEach(() => t.stop());

describe("/cd", () => {
  it("sends the rules and tells old from new", async () => {
    await mkdir(join(t.home, "shop"));
    await writeFile(join(t.home, "shop", "AGENTS.md"), "\uFEFFBe kind.\r\nAlways.\n");
    const { id } = t.chat.session;
    expect(await t.run("/cd shop")).toMatch(/^project shop: sha256:\w{12}, epoch 1 → sha256:\w{12}, epoch 2\n$/);
    const [refresh] = t.stub.requests("POST", /refresh$/);
    expect(JSON.parse(refresh?.body ?? "")).toEqual({ project: { name: "shop", rules: "Be kind.\nAlways.\n" } });
    expect(refresh?.path).toBe(`/v1/sessions/${id}/refresh`);
    expect(await t.run("/cd .")).toMatch(/^project shop: unchanged: sha256:\w{12}, epoch 2\n$/);
  });

  it("sends nothing when there is nothing to read", async () => {
    await writeFile(join(t.home, "file"), "");
    await mkdir(join(t.home, "odd", "AGENTS.md"), { recursive: true });
    await mkdir(join(t.home, "latin"));
    await writeFile(join(t.home, "latin", "AGENTS.md"), Buffer.from([0x67, 0xfc, 0x6e]));
    const before = t.chat.directory;
    expect(await t.run("/cd nowhere")).toContain(`Cannot read ${join(t.home, "nowhere", "AGENTS.md")}: there is none`);
    expect(await t.run("/cd file")).toContain("it is not in a directory");
    expect(await t.run("/cd odd")).toContain("it is not a file");
    expect(await t.run("/cd latin")).toContain("is not UTF-8 text");
    expect(await t.run("/cd")).toContain("/cd needs a directory");
    expect(t.stub.requests("POST", /refresh$/)).toHaveLength(0);
    expect(t.chat.directory).toBe(before);
  });
});

describe("the other commands", () => {
  it("/new starts a session, with another agent too; an unknown one changes nothing", async () => {
    const first = t.chat.session;
    expect(await t.run("/new nobody")).toContain('agent: no agent "nobody"');
    expect(t.chat.session).toBe(first);
    expect(await t.run("/new standup")).toContain("agent standup");
    expect(t.chat.session.agent).toBe("standup");
    await t.run("/new");
    expect(t.chat.session.agent).toBe("standup");
  });

  it("/refresh, /clear and /context", async () => {
    expect(await t.run("/refresh")).toMatch(/^instructions: unchanged: sha256:\w{12}, epoch 1\n$/);
    expect(await t.run("/clear")).toMatch(/^The history is cleared\. Instructions: .*epoch 1 → .*epoch 2\n$/);
    expect(await t.run("/context")).toContain("12,000 of 100,000 tokens used (12%)\n█▓▒▒▒▒▒···");
  });

  it("/prompt shows the text and checks its hash", async () => {
    const good = await t.run("/prompt");
    expect(good).toContain(
      "You are Wren.\n\nBe brief.\n24 bytes, model demo/echo, epoch 1, in the log since entry 4\n",
    );
    expect(good).toContain("The text above has this hash.");
    t.stub.promptText = "You are Crow.";
    expect(await t.run("/prompt")).toContain("does NOT have this hash");
  });

  it("an unknown command lists the known ones and is not sent", async () => {
    expect(await t.run("/nonsense x")).toContain("There is no command /nonsense. The commands: /new /resume");
    expect(await t.run("/refresh x")).toContain("/refresh takes no argument");
    expect(t.stub.requests("POST", /turns$/)).toHaveLength(0);
    expect(await t.run("/help")).toContain("/cd DIR");
  });
});
