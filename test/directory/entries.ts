/** Entries as a session would send them. */
import type { EntryVersion, SessionEntry } from "../../src/directory/entry.ts";

export function sampleEntry(change: Partial<SessionEntry> = {}): SessionEntry {
  return {
    id: "s",
    agent: "concierge",
    identity: { id: "agent-1", name: "Wren" },
    model: "demo/echo",
    state: "idle",
    messageCount: 0,
    createdAt: "2026-01-01T00:00:00.000Z",
    updatedAt: "2026-01-01T00:00:00.000Z",
    ...change,
  };
}

export function entryVersion(change: Partial<EntryVersion> = {}): EntryVersion {
  return { birth: "b", erasures: 0, seq: 4, ...change };
}
