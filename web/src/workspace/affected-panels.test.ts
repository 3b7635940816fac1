import { expect, it } from "vitest";

import type { Event } from "../lib/events";
import { affectedPanels } from "./affected-panels";

const restored = (payload: object) =>
  affectedPanels({ id: 1, time: "2026-01-02T15:04:05Z", kind: "restored", payload: { action: "restore", point: 3, ...payload } } as Event);

it("shows files again after they were restored", () => {
  expect(restored({ files: true }).files).toBe(true);
  expect(restored({ conversation: true }).files).toBe(false);
});
