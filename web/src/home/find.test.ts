import { expect, it, vi } from "vitest";

import { matching } from "./models";

vi.stubGlobal("document", { baseURI: "http://deckhand.test/" });
const { named } = await import("./git");

it.each([
  ["ada/engine", "ada/engine"],
  ["group/sub/engine", "group/sub/engine"],
  ["https://git.example.org/ada/engine.git", "ada/engine"],
  ["git@git.example.org:ada/engine.git", "ada/engine"],
  ["ssh://git@git.example.org/ada/engine/", "ada/engine"],
  ["engine", undefined],
  ["ada/", undefined],
  ["ada/en gine", undefined],
  ["", undefined],
])("%j names %j", (text, expected) => expect(named(text)?.full_name).toBe(expected));

it("finds models by words, with those of the provider in use first", () => {
  const all = ["acme/tuna-large", "acme/salmon", "zed/tuna-large", "zed/large-tuna", "zed/tuna"];
  expect(matching(all, "tuna", "zed")).toEqual(["zed/tuna-large", "zed/tuna", "zed/large-tuna", "acme/tuna-large"]);
  expect(matching(all, "large TUNA", "")).toEqual(["acme/tuna-large", "zed/tuna-large", "zed/large-tuna"]);
  expect(matching(all, "zed/tuna-l", "acme")).toEqual(["zed/tuna-large"]);
  expect(matching(all, "cod", "acme")).toEqual([]);
});
