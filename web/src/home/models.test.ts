import { expect, it } from "vitest";

import { matching } from "./models";

it("finds models by words, with those of the provider in use first", () => {
  const all = ["acme/tuna-large", "acme/salmon", "zed/tuna-large", "zed/large-tuna", "zed/tuna"];
  expect(matching(all, "tuna", "zed")).toEqual(["zed/tuna-large", "zed/tuna", "zed/large-tuna", "acme/tuna-large"]);
  expect(matching(all, "large TUNA", "")).toEqual(["acme/tuna-large", "zed/tuna-large", "zed/large-tuna"]);
  expect(matching(all, "zed/tuna-l", "acme")).toEqual(["zed/tuna-large"]);
  expect(matching(all, "cod", "acme")).toEqual([]);
});
