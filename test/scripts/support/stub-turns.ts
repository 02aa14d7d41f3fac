/** How the stub's turns go, by input. Each makes the events of a turn; one without `end` stays open until cancelled. */
import type { StubEvent } from "./stub-service.ts";

type Script = (turn: string, input: string) => StubEvent[];

const begin = (turn: string, attempt = 1): StubEvent => ({
  event: "turn",
  data: { turn, state: "dispatched", attempt, reason: null },
});
const delta = (text: string, more: Partial<StubEvent> = {}): StubEvent => ({ event: "delta", data: { text }, ...more });
const message = (text: string): StubEvent => ({ event: "message", data: { id: "m2", text } });
const end = (state = "completed", reason: string | null = null): StubEvent => ({
  event: "end",
  data: { state, reason, usage: null },
});

export const echo: Script = (turn, input) => [
  begin(turn),
  delta("You said: "),
  delta(input),
  message(`You said: ${input}`),
  end(),
];

export const SCRIPTS: Readonly<Record<string, Script>> = {
  break: (turn) => [
    begin(turn),
    delta("one "),
    delta("two "),
    delta("three", { breakBefore: true }),
    message("one two three"),
    end(),
  ],
  deaf: (turn) => [begin(turn), delta("heard"), message("heard"), end()],
  reset: (turn) => [begin(turn), delta("wrong"), { event: "reset", data: {} }, begin(turn, 2), delta("right"), end()],
  resync: (turn) => [begin(turn), delta("a"), { event: "resync", data: { text: "abc" } }, message("abc"), end()],
  tool: (turn) => [
    begin(turn),
    delta("Let me look. "),
    { event: "tool", data: { callId: "c1", name: "weather", state: "running" } },
    { event: "tool", data: { callId: "c1", name: "weather", state: "done" } },
    delta("It rains."),
    message("It rains."),
    end(),
  ],
  fail: (turn) => [begin(turn), delta("half an ans"), end("failed", "provider_unavailable")],
  unknown: (turn) => [begin(turn), delta("half"), end("unknown", "restarted")],
  controls: (turn) => [begin(turn), delta("a\u001b[2Jb\r\u0007"), delta("\u009b31mc\td\n"), end()],
  open: (turn) => [begin(turn), delta("thinking")],
  future: (turn) => [begin(turn), { event: "mood", data: { is: "good" } }, delta("fine"), end()],
};
