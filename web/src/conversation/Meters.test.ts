// @vitest-environment jsdom
import { expect, it } from "vitest";

import { session, type Settings } from "../lib/session.svelte";

import { render, server, soon, words } from "../testing/page";
import Meters from "./Meters.svelte";
import { OpenConversation } from "./open-conversation.svelte";

it.each([
  [0, 0, "Cost: $0.00"],
  [0, 500, "Price unknown"],
  [1.5, 500, "Cost: $1.50"],
])("shows a cost of %d after %i tokens", (dollars, tokens, said) => {
  const conversation = new OpenConversation("c1");
  conversation.status.usage = { dollars, tokens, window: 0 };
  render(Meters, { conversation });
  expect(words()).toContain(said);
  if (tokens > 0) expect(words()).not.toContain("$0.00");
});

it.each([
  ["Free", ["free/a"], false],
  ["Price unknown", ["odd/b"], false],
  ["Price unknown", ["free/a", "odd/b"], false],
  ["Price unknown", ["free/a"], true],
])("says %s of the models %j, with older events: %s", async (said, models, more) => {
  server.on("GET /api/models", () => ({
    models: [
      { id: "free/a", input_price: 0, output_price: 0 },
      { id: "odd/b", input_price: null, output_price: null },
    ],
  }));
  session.settings = { llm_model: "free/a" } as Settings; // the default model of now says nothing about earlier calls
  const conversation = new OpenConversation("c1");
  conversation.more = more;
  models.forEach((model, i) =>
    conversation.log.append({ id: i + 1, time: "2026-01-02T15:04:05Z", kind: "model_asked", payload: { call: `m${i}`, model } } as never),
  );
  conversation.status.usage = { dollars: 0, tokens: 500, window: 0 };
  render(Meters, { conversation });
  await soon(() => expect(words()).toContain(said));
  session.settings = undefined;
});
