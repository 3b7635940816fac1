// @vitest-environment jsdom
import { expect, it } from "vitest";

import { render, words } from "../testing/page";
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
