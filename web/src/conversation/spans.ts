// Where time went, turn by turn.
import type { SpanKind, Timeline } from "./routes";

export const kinds: SpanKind[] = ["queue", "sandbox", "model", "tool", "approval"];

export interface Turn {
  /** The event that began it. */
  event: number;
  from: number;
  length: number;
  parts: Record<SpanKind, number>;
  /** What no span tells. */
  rest: number;
}

const none = (): Record<SpanKind, number> => ({ queue: 0, sandbox: 0, model: 0, tool: 0, approval: 0 });

/** turns adds spans up by the turn in which they began; what is before the first is the first's. */
export function turns(timeline: Timeline, now: number): Turn[] {
  const list = (timeline.turns ?? []).map((t): Turn => {
    const from = Date.parse(t.started_at);
    return { event: t.event_id, from, length: (t.ended_at ? Date.parse(t.ended_at) : now) - from, parts: none(), rest: 0 };
  });
  for (const s of timeline.spans ?? []) {
    const from = Date.parse(s.started_at);
    const to = s.ended_at ? Date.parse(s.ended_at) : now;
    const turn = owner(list, from);
    // A message that comes in while the agent works waits, but no time is lost by it.
    if (turn && !(s.kind === "queue" && from > turn.from)) turn.parts[s.kind] += Math.max(0, to - from);
  }
  for (const t of list) {
    const known = kinds.reduce((sum, k) => sum + t.parts[k], 0);
    t.rest = Math.max(0, t.length - known);
    t.length = Math.max(t.length, known);
  }
  return list;
}

/** owner is the turn a moment belongs to: what waits for a turn belongs to the next one. */
function owner(list: Turn[], at: number): Turn | undefined {
  for (const turn of list) if (at < turn.from + turn.length) return turn;
  return list.at(-1);
}
