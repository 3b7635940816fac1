import { afterEach, expect, it, vi } from "vitest";

import { unique } from "./unique";

afterEach(() => vi.unstubAllGlobals());

it("needs nothing that browsers keep from pages without TLS", () => {
  vi.stubGlobal("crypto", { getRandomValues: (to: Uint8Array) => to.fill(10) });
  expect(unique()).toBe("0a".repeat(16));
  vi.unstubAllGlobals();
  expect(unique()).not.toBe(unique());
});
