import { expect, it } from "vitest";

import { type Restore, visible, within } from "./restores";

/** seen returns the events that the model sees, up to the given one. */
const seen = (last: number, ...restores: [id: number, action: Restore["action"], point: number][]) => {
  const ranges = visible(restores.map(([id, action, point]) => ({ id, action, point })));
  return Array.from({ length: last }, (_, i) => i + 1).filter((id) => within(ranges, id));
};

it("a restore hides what came after its point", () => {
  expect(seen(5)).toEqual([1, 2, 3, 4, 5]);
  expect(seen(8, [6, "restore", 3])).toEqual([1, 2, 3, 6, 7, 8]);
});

it("an undo shows it again, and hides what came since the restore", () => {
  expect(seen(9, [6, "restore", 3], [8, "undo", 3])).toEqual([1, 2, 3, 4, 5, 8, 9]);
  expect(seen(9, [6, "restore", 3], [7, "undo", 3], [9, "redo", 3])).toEqual([1, 2, 3, 9]);
});

it("restores are undone one by one", () => {
  const two: Parameters<typeof seen>[1][] = [
    [7, "restore", 5],
    [8, "restore", 2],
  ];
  expect(seen(8, ...two)).toEqual([1, 2, 8]);
  expect(seen(9, ...two, [9, "undo", 2])).toEqual([1, 2, 3, 4, 5, 7, 9]);
  expect(seen(10, ...two, [9, "undo", 2], [10, "undo", 5])).toEqual([1, 2, 3, 4, 5, 6, 10]);
});

it("an undo of a restore that is not known hides what came between", () => expect(seen(10, [9, "undo", 2])).toEqual([1, 2, 9, 10]));
