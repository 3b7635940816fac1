import { expect, it } from "vitest";

import { beforeLastTurn, points } from "./points";

const at = (event_id: number, between_turns = false) => ({
  event_id,
  time: "2026-01-02T15:04:05Z",
  files: 1,
  changed: 1,
  left_out: 0,
  bytes: 1,
  between_turns,
});
const messages = [
  { id: 2, text: "Write it\nnow" },
  { id: 10, text: "Mend it" },
];

it("offers the current files and those after each turn, newest first", () => {
  expect(points([at(8), at(16)], messages, 0)).toEqual([
    { event: 0, name: "Now" },
    { event: 16, name: "After “Mend it”" },
    { event: 8, name: "After “Write it…”" },
  ]);
});

it("offers the point that is looked at", () => {
  expect(points([at(8)], messages, 9).map((p) => p.name)).toEqual(["Now", "Before “Mend it”", "After “Write it…”"]);
  expect(points([at(8)], messages, 8)).toHaveLength(2);
});

it("names a turn by its time if its message is not loaded", () => {
  expect(points([at(8)], [], 0)[1]!.name).toMatch(/^After the turn at .*26/);
});

it("names the files that others changed between turns by the next message", () => {
  expect(points([at(8), at(9, true), at(16)], messages, 0).map((p) => p.name)).toEqual([
    "Now",
    "After “Mend it”",
    "Before “Mend it”",
    "After “Write it…”",
  ]);
});

it("names changes after the last turn, which no message follows", () => {
  expect(points([at(16), at(17, true)], messages, 0).map((p) => p.name)).toEqual([
    "Now",
    "Your changes after “Mend it”",
    "After “Mend it”",
  ]);
});

it.each([
  [[], 0],
  [[at(8)], 0],
  [[at(8), at(16)], 8],
  [[at(8), at(9, true), at(16), at(17, true)], 9],
])("finds the point before the last turn: %#", (list, event) => {
  expect(beforeLastTurn(list)).toBe(event);
});
