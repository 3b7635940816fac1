// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it } from "vitest";

import { all, nameOf, render, words } from "../testing/page";
import AgentControls from "./AgentControls.svelte";
import { OpenConversation } from "./open-conversation.svelte";
import Waiting from "./Waiting.svelte";

let conversation: OpenConversation;
const happens = (id: number, kind: string, payload: object) =>
  conversation.log.append({ id, time: "2026-01-02T15:04:05Z", kind, payload } as never);
const buttons = () => all("button").map((b) => nameOf(b));

beforeEach(() => {
  conversation = new OpenConversation("c1");
  happens(2, "user_said", { text: "first" });
  happens(3, "turn_began", {});
});
afterEach(() => conversation.close());

it("can pause and stop an agent that waits for a rate limit, and shows how long it has waited", () => {
  happens(4, "state_changed", { state: "rate_limited" });
  render(AgentControls, { conversation });
  render(Waiting, { conversation });
  expect(buttons()).toEqual(["Pause", "Stop"]);
  expect(words()).toMatch(/Waiting to retry ?·/);
  expect(conversation.inTurn).toBe(true);
});

it("can resume an agent that gave up because of a rate limit", () => {
  happens(4, "turn_ended", { up_to: 2, state: "rate_limited" });
  render(AgentControls, { conversation });
  render(Waiting, { conversation });
  expect(buttons()).toEqual(["Resume", "Stop"]);
  expect(words()).not.toContain("Waiting");
  expect(conversation.inTurn).toBe(false);
});
