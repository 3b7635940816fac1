import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { heard, now } from "./now";

const noon = Date.parse("2026-03-01T12:00:00Z");
beforeEach(() => vi.useFakeTimers({ now: noon }));
afterEach(() => vi.useRealTimers());

it.each([
  ["a clock that is late", "Sun, 01 Mar 2026 15:00:00 GMT", 3 * 3_600_000],
  ["a clock that is early", "Sun, 01 Mar 2026 11:00:00 GMT", -3_600_000],
  ["a clock that is right, as far as can be told", "Sun, 01 Mar 2026 11:59:58 GMT", 0],
])("goes by the server: %s", (_, date, by) => {
  heard(date);
  expect(now()).toBe(noon + by);
  heard(null);
  expect(now()).toBe(noon + by);
});
