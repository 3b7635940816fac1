import { expect, it } from "vitest";

import { language } from "./i18n.svelte";

const noon = Date.parse("2026-03-01T12:00:00Z");
const after = (minutes: number) => new Date(noon + minutes * 60_000);

it.each([
  [-190, "3 hours ago"],
  [-3, "3 minutes ago"],
  [0, "now"],
  [3, "now"],
])("what happened is never in the future: %d minutes", (minutes, words) => expect(language.ago(after(minutes), noon)).toBe(words));

it.each([
  [3, "in 3 minutes"],
  [90 * 24 * 60 - 1, "in 90 days"],
  [-3, "now"],
])("what is to come is never in the past: %d minutes", (minutes, words) => expect(language.until(after(minutes), noon)).toBe(words));
