// @vitest-environment jsdom
import { expect, it } from "vitest";

import { choose, click, render, server, soon, the, words } from "../testing/page";
import Entry from "./Entry.svelte";
import ModelDialog from "./ModelDialog.svelte";
import { OpenConversation } from "./open-conversation.svelte";

it("sets the approvals of one conversation", async () => {
  const route = "PUT /api/conversations/c1/overrides";
  server.on(route, () => ({ llm_model: null, max_budget_per_task: null, reasoning_effort: null, plan_mode: false, approval: "always" }));
  const conversation = new OpenConversation("c1");
  render(ModelDialog, { conversation, open: true });
  choose(the("combobox", "Approvals"), "Always ask");
  click(the("button", "Save"));
  await soon(() =>
    expect(server.to(route)).toEqual([{ llm_model: null, reasoning_effort: null, max_budget_per_task: null, approval: "always" }]),
  );
  await soon(() => expect(conversation.overrides?.approval).toBe("always"));
  conversation.close();
});

it("is told in a notice", () => {
  const conversation = new OpenConversation("c1");
  conversation.log.append({ id: 2, time: "2026-01-02T15:04:05Z", kind: "overridden", payload: { approval: "always" } });
  for (const item of conversation.log.items) render(Entry, { item, conversation });
  expect(words()).toContain("approvals: Always ask");
  conversation.close();
});
