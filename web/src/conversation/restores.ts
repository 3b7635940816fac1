// Determines which events the model still sees after restores of the conversation. The server uses
// the same rules (internal/agent, transcript.restored).

/** A restore of the conversation, or its undo or redo. */
export interface Restore {
  id: number;
  action: "restore" | "undo" | "redo";
  /** The last event that stays. */
  point: number;
}

/** Events from one to another, both included. */
type Range = [from: number, to: number];

/** visible returns the ranges of events that the model sees, in order. */
export function visible(restores: Restore[]): Range[] {
  let now: Range[] = [[0, Infinity]];
  const hidden: Range[][] = [];
  for (const { id, action, point } of restores) {
    const before = cut(now, 0, point);
    // The undone restore may be on a page that is not loaded.
    if (action === "undo") now = [...before, ...(hidden.pop() ?? [])];
    else {
      hidden.push(cut(now, point + 1, id - 1));
      now = before;
    }
    now.push([id, Infinity]);
  }
  return now;
}

export const within = (ranges: Range[], id: number) => ranges.some(([from, to]) => id >= from && id <= to);

const cut = (ranges: Range[], from: number, to: number): Range[] =>
  ranges.map(([a, b]): Range => [Math.max(a, from), Math.min(b, to)]).filter(([a, b]) => a <= b);
