import { expect, it } from "vitest";

import { History } from "./history";

it("goes back and forth, and returns to what was being written", () => {
  const h = new History(() => ["newest", "older"]);
  expect(h.newer("draft")).toBeUndefined();
  expect(h.older("draft")).toBe("newest");
  expect(h.older("newest")).toBe("older");
  expect(h.older("older")).toBeUndefined();
  expect(h.newer("older")).toBe("newest");
  expect(h.newer("newest")).toBe("draft");
});

it("begins anew after an edit", () => {
  const h = new History(() => ["newest", "older"]);
  h.older("");
  expect(h.browses("newest and more")).toBe(false);
  expect(h.older("newest and more")).toBe("newest");
  expect(h.newer("newest")).toBe("newest and more");
});
