// The arithmetic of a list of which only the visible part exists. offsets[i] is where
// item i begins, and the last one is where the list ends.

/** offsets adds heights up. */
export function offsets(heights: number[]): Float64Array {
  const sums = new Float64Array(heights.length + 1);
  for (let i = 0; i < heights.length; i++) sums[i + 1] = sums[i]! + heights[i]!;
  return sums;
}

/** at is the item that lies at a height; the ends count for what is beyond them. */
export function at(sums: Float64Array, y: number): number {
  let low = 0;
  let high = sums.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (sums[middle]! <= y) low = middle;
    else high = middle - 1;
  }
  return Math.max(low, 0);
}

/** range is which items to show for a window: from inclusive, to exclusive. */
export function range(sums: Float64Array, top: number, height: number, beyond: number): { from: number; to: number } {
  const count = sums.length - 1;
  if (count === 0) return { from: 0, to: 0 };
  return { from: at(sums, top - beyond), to: Math.min(at(sums, top + height + beyond) + 1, count) };
}

/** So close to the end, in pixels, counts as being there. */
const near = 32;

/** A scroll of the window. */
export interface Scroll {
  /** What is left below the window. */
  left: number;
  up: boolean;
  /** Whether the list changed since the last one. */
  grew: boolean;
  /** Whether the person moves it. */
  byHand: boolean;
}

/**
 * follows says whether the window stays at the end. Only going up lets go, and not where the
 * list itself became shorter: heights were guessed, and pictures come late.
 */
export function follows(before: boolean, s: Scroll): boolean {
  if (s.left < near) return true;
  return before && !(s.up && (s.byHand || !s.grew));
}

/** A place that stays when what is above it changes: an item, and how far into it. */
export interface Anchor {
  key: string;
  into: number;
}

/** anchor is the place at the top of the window. */
export function anchor(keys: string[], sums: Float64Array, top: number): Anchor | undefined {
  const i = at(sums, top);
  const key = keys[i];
  return key === undefined ? undefined : { key, into: top - sums[i]! };
}

/** place is where the window has to be for the anchor to be where it was. */
export function place(keys: string[], sums: Float64Array, a: Anchor): number | undefined {
  const i = keys.indexOf(a.key);
  return i < 0 ? undefined : sums[i]! + a.into;
}
