// @vitest-environment jsdom
import { describe, expect, it } from "vitest";

import { ApiError } from "../lib/api";
import { type Attempt, changing, faults } from "./routes";

const field = (...loc: (string | number)[]) => ({ loc: ["body", ...loc], msg: "Wrong.", type: "value_error" });

describe("faults", () => {
  it("names fields", () => {
    expect(faults(new ApiError(422, "Wrong.", "", [field("task"), field("attempts", 1, "instructions")], ""))).toEqual({
      task: "Wrong.",
      "attempts.1.instructions": "Wrong.",
    });
  });
  it("names the attempt whose model cannot be used", () => {
    expect(faults(new ApiError(400, "attempts[2].model: No key.\nStore one.", "", [], ""))).toEqual({
      "attempts.2.model": "No key.\nStore one.",
    });
  });
  it("has other failures as they are", () => {
    expect(faults(new ApiError(409, "The agent is working.", "", [], ""))).toEqual({ "": "The agent is working." });
    expect(faults(new Error("Offline"))).toEqual({ "": "Offline" });
  });
});

describe("changing", () => {
  const is = (a: object) => changing({ state: "started", working: false, ...a } as Attempt);
  it("follows agents and tests", () => {
    expect(is({ state: "starting" })).toBe(true);
    expect(is({ working: true })).toBe(true);
    expect(is({ test: { state: "running" } })).toBe(true);
    expect(is({ test: { state: "passed" } })).toBe(false);
    expect(is({ state: "kept", working: true })).toBe(false);
    expect(is({ state: "failed" })).toBe(false);
  });
});
