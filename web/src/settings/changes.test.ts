import { describe, expect, it } from "vitest";

import { changed, keyed, number, same } from "./changes";

describe("changed", () => {
  it("holds what differs from what is stored", () => {
    expect(changed({}, "a", "llm_model", "b")).toEqual({ llm_model: "b" });
  });

  it("forgets what was changed back", () => {
    expect(changed({ llm_model: "b", agent: "x" }, "a", "llm_model", "a")).toEqual({ agent: "x" });
  });

  it("takes an empty text for none, so that nothing is sent for it", () => {
    expect(changed({}, null, "llm_base_url", "")).toEqual({});
    expect(changed({}, "http://x", "llm_base_url", "")).toEqual({ llm_base_url: "" });
  });

  it("tells zero and false from none", () => {
    expect(changed({}, null, "max_budget_per_task", 0)).toEqual({ max_budget_per_task: 0 });
    expect(changed({}, null, "confirmation_mode", false)).toEqual({ confirmation_mode: false });
  });

  it("compares lists by what is in them", () => {
    expect(same({ sse_servers: [{ url: "a" }] }, { sse_servers: [{ url: "a" }] })).toBe(true);
    expect(same({ sse_servers: [{ url: "a" }] }, { sse_servers: [] })).toBe(false);
  });
});

describe("keyed", () => {
  it("sends an empty text to remove a key, and nothing to keep it", () => {
    expect(keyed({}, "llm_api_key", "")).toEqual({ llm_api_key: "" });
    expect(keyed({ llm_api_key: "x" }, "llm_api_key", undefined)).toEqual({});
  });
});

describe("number", () => {
  it.each([
    ["", null],
    [" 12 ", 12],
    ["0", 0],
    ["1,5", 1.5],
    ["1.5", 1.5],
    ["ten", "ten"],
    ["1,000,000", "1,000,000"],
  ])("%j is %j", (text, want) => expect(number(text)).toBe(want));
});
