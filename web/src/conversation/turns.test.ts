import { expect, test } from "vitest";

import type { SpanKind, Timeline } from "./routes";
import { turns } from "./turns";

const time = (s: number) => new Date(s * 1000).toISOString();
const span = (kind: SpanKind, from: number, to: number | null) => ({
  kind,
  name: "",
  started_at: time(from),
  ended_at: to === null ? null : time(to),
  event_id: 1,
});

test("time goes to the turn it was spent in, and waiting to the one that came of it", () => {
  const timeline: Timeline = {
    has_more: false,
    spans_left_out: 0,
    totals: { queue_ms: 0, sandbox_ms: 0, model_ms: 0, tool_ms: 0, approval_ms: 0 },
    turns: [
      { started_at: time(10), ended_at: time(20), event_id: 3 },
      { started_at: time(30), ended_at: null, event_id: 9 },
    ],
    spans: [
      span("sandbox", 5, 10),
      span("model", 11, 14),
      span("tool", 14, 18),
      span("queue", 15, 30),
      span("queue", 25, 30),
      span("model", 30, null),
    ],
  };
  const [first, second] = turns(timeline, 40_000);
  expect(first).toMatchObject({ event: 3, parts: { sandbox: 5000, model: 3000, tool: 4000, queue: 0 }, rest: 0, length: 12_000 });
  expect(second).toMatchObject({ event: 9, parts: { queue: 5000, model: 10_000 }, rest: 0 });
  expect(first!.steps.map((s) => [s.kind, s.at, s.part, s.length])).toEqual([
    ["sandbox", 0, 5 / 13, 5000],
    ["model", 6 / 13, 3 / 13, 3000],
    ["tool", 9 / 13, 4 / 13, 4000],
  ]);
  expect(turns({ ...timeline, turns: null, spans: null }, 0)).toEqual([]);
});
