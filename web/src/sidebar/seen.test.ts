// @vitest-environment jsdom
import { beforeEach, expect, it } from "vitest";

import { browserStorage } from "../lib/storage";
import { Seen } from "./seen.svelte";

const start = Date.parse("2026-01-01T00:00:00Z");
const row = (event: number, more: object = {}) => ({
  conversation_id: "c1",
  last_event_id: event,
  last_updated_at: "2026-01-02T00:00:00Z",
  status: "RUNNING",
  agent_state: "awaiting_user_input",
  ...more,
});

beforeEach(() => browserStorage.remove("deckhand-seen"));

it("marks what changed after it was looked at", () => {
  const seen = new Seen(start);
  expect(seen.unread(row(5))).toBe(true);
  seen.mark("c1", 5);
  expect(seen.unread(row(5))).toBe(false);
  expect(seen.unread(row(6))).toBe(true);
  expect(new Seen(start).unread(row(5))).toBe(false);
});

it("leaves alone what works, and what is older than this browser's first look", () => {
  const seen = new Seen(start);
  expect(seen.unread(row(5, { agent_state: "running" }))).toBe(false);
  expect(seen.unread(row(5, { status: "STARTING" }))).toBe(false);
  expect(seen.unread(row(5, { last_updated_at: "2025-12-31T00:00:00Z" }))).toBe(false);
});

it("survives a store of another version", () => {
  browserStorage.set("deckhand-seen", '{"events":7}');
  expect(new Seen(start).unread(row(5))).toBe(true);
});
