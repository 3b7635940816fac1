// @vitest-environment jsdom
import { expect, it } from "vitest";

import { render, words } from "../testing/page";
import Counts from "./Counts.svelte";

it.each([
  [1, 2, "1 line added, 2 removed"],
  [2, 1, "2 lines added, 1 removed"],
])("counts %i added and %i removed lines", (added, removed, said) => {
  render(Counts, { added, removed });
  expect(words()).toContain(said);
});
