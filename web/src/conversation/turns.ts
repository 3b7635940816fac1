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
  /** The spans themselves, in order. */
  steps: Step[];
}

export interface Step {
  kind: SpanKind;
  name: string;
  /** Where it lies within all steps of the turn, from 0 to 1. */
  at: number;
  part: number;
  length: number;
}

const none = (): Record<SpanKind, number> => ({ queue: 0, sandbox: 0, model: 0, tool: 0, approval: 0 });

/** turns adds spans up by the turn in which they began; what is before the first is the first's. */
export function turns(timeline: Timeline, now: number): Turn[] {
  const list = (timeline.turns ?? []).map((t): Turn => {
    const from = Date.parse(t.started_at);
    return { event: t.event_id, from, length: (t.ended_at ? Date.parse(t.ended_at) : now) - from, parts: none(), rest: 0, steps: [] };
  });
  const spans = new Map<Turn, { kind: SpanKind; name: string; from: number; to: number }[]>();
  for (const s of timeline.spans ?? []) {
    const from = Date.parse(s.started_at);
    const to = s.ended_at ? Date.parse(s.ended_at) : now;
    const turn = owner(list, from);
    // A message that comes in while the agent works waits, but no time is lost by it.
    if (!turn || (s.kind === "queue" && from > turn.from)) continue;
    turn.parts[s.kind] += Math.max(0, to - from);
    const those = spans.get(turn) ?? [];
    those.push({ kind: s.kind, name: s.name, from, to });
    spans.set(turn, those);
  }
  for (const [turn, list] of spans) turn.steps = steps(list);
  for (const t of list) {
    const known = kinds.reduce((sum, k) => sum + t.parts[k], 0);
    t.rest = Math.max(0, t.length - known);
    t.length = Math.max(t.length, known);
  }
  return list;
}

/** steps puts spans to scale. */
function steps(list: { kind: SpanKind; name: string; from: number; to: number }[]): Step[] {
  const first = Math.min(...list.map((s) => s.from));
  const all = Math.max(1, Math.max(...list.map((s) => s.to)) - first);
  return list
    .toSorted((a, b) => a.from - b.from)
    .map(({ kind, name, from, to }) => ({
      kind,
      name,
      at: (from - first) / all,
      part: Math.max(0, to - from) / all,
      length: Math.max(0, to - from),
    }));
}

/** owner is the turn a moment belongs to: what waits for a turn belongs to the next one. */
function owner(list: Turn[], at: number): Turn | undefined {
  for (const turn of list) if (at < turn.from + turn.length) return turn;
  return list.at(-1);
}
