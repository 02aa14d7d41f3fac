/** What the build makes of `prompts/`, and the names of the texts the runtime relies on. */
import type { AgentDefinition } from "./agent.ts";

/** Platform texts of the base slot, in the order they are sent. */
export const PLATFORM_TEXTS = ["persistence", "memory", "capabilities"] as const;
export type PlatformText = (typeof PLATFORM_TEXTS)[number];

/** Heads a project's rules in the developer slot; the rules follow it unchanged. */
export const PROJECT_HEADER = "project";

/** What a turn can be about. `message` has no text of its own: the message speaks for itself. */
export const EVENTS = ["message", "fresh_start", "wake", "resume", "unread", "idle", "deferred_continuation"] as const;
export type EventName = (typeof EVENTS)[number];
export type EventWithText = Exclude<EventName, "message">;
export const EVENTS_WITH_TEXT = EVENTS.filter((name): name is EventWithText => name !== "message");

/** One-time remarks to the model. */
export const NOTICES = ["identity", "memory_resume", "interrupted", "cancelled", "history_seeded", "drift"] as const;
export type NoticeName = (typeof NOTICES)[number];

export interface PromptBundle {
  platform: Record<PlatformText | typeof PROJECT_HEADER, string>;
  events: Record<EventWithText, string>;
  notices: Record<NoticeName, string>;
  /** By name, not yet split. */
  skills: Record<string, string>;
  /** Notes for a model family, by family. */
  models: Record<string, string>;
  agents: Record<string, AgentDefinition>;
}
