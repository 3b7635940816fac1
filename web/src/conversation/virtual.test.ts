import { describe, expect, test } from "vitest";

import { anchor, at, follows, offsets, place, range } from "./virtual";

describe("a list of which a part exists", () => {
  const sums = offsets([10, 20, 30, 20, 50]);

  test("adds heights up", () => {
    expect([...sums]).toEqual([0, 10, 30, 60, 80, 130]);
    expect([...offsets([])]).toEqual([0]);
  });

  test.each([
    [-5, 0],
    [0, 0],
    [9.9, 0],
    [10, 1],
    [79, 3],
    [80, 4],
    [999, 4],
  ])("finds what is at %d", (y, i) => expect(at(sums, y)).toBe(i));

  test.each([
    [0, 10, 0, { from: 0, to: 2 }],
    [35, 20, 0, { from: 2, to: 3 }],
    [35, 20, 30, { from: 0, to: 5 }],
    [120, 100, 0, { from: 4, to: 5 }],
  ])("shows from %d, %d high, and %d beyond", (top, height, beyond, want) => expect(range(sums, top, height, beyond)).toEqual(want));

  test("shows nothing of nothing", () => expect(range(offsets([]), 0, 100, 50)).toEqual({ from: 0, to: 0 }));

  test("keeps its place when something is put before, or grows", () => {
    const keys = ["a", "b", "c"];
    const held = anchor(keys, offsets([100, 100, 100]), 130)!;
    expect(held).toEqual({ key: "b", into: 30 });
    expect(place(["x", "y", ...keys], offsets([20, 40, 150, 100, 100]), held)).toBe(20 + 40 + 150 + 30);
    expect(place(["x"], offsets([10]), held)).toBeUndefined();
    expect(anchor([], offsets([]), 0)).toBeUndefined();
  });

  test("agrees with a plain search, for many heights", () => {
    const heights = Array.from({ length: 500 }, (_, i) => 1 + ((i * 7919) % 97));
    const many = offsets(heights);
    for (let y = 0; y < many[500]!; y += 131) expect(at(many, y)).toBe(heights.findIndex((_, i) => many[i + 1]! > y));
  });
});

test.each([
  ["a person goes up", { left: 400, up: true, grew: false, byHand: true }, false],
  ["a person goes up while an answer is written", { left: 400, up: true, grew: true, byHand: true }, false],
  ["the user searches the page", { left: 400, up: true, grew: false, byHand: false }, false],
  ["the list became shorter, and longer again", { left: 400, up: true, grew: true, byHand: false }, true],
  ["the list became longer", { left: 400, up: false, grew: true, byHand: false }, true],
])("whether the end is followed when %s", (_, scroll, stays) => {
  expect(follows(true, scroll)).toBe(stays);
  expect(follows(false, scroll)).toBe(false);
  expect(follows(false, { ...scroll, left: 10 })).toBe(true);
});
