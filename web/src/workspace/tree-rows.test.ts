import { describe, expect, it } from "vitest";

import { rows, step } from "./tree-rows";

const read = new Map([
  ["", ["docs/", "src/", "README.md"]],
  ["src/", ["src/lib/", "src/main.go"]],
  ["src/lib/", ["src/lib/a.go"]],
]);
const paths = (open: string[]) => rows(read, new Set(open)).map((r) => r.path);

describe("the rows of a tree", () => {
  it("are those of the top while all is closed", () => expect(paths([])).toEqual(["docs/", "src/", "README.md"]));

  it("have what is in open folders below them", () => {
    expect(rows(read, new Set(["src/", "src/lib/"])).map((r) => [r.level, r.name])).toEqual([
      [1, "docs"],
      [1, "src"],
      [2, "lib"],
      [3, "a.go"],
      [2, "main.go"],
      [1, "README.md"],
    ]);
  });

  it("hide an open folder in a closed one", () => expect(paths(["src/lib/"])).toEqual(["docs/", "src/", "README.md"]));
  it("do with a folder that is not read yet", () => expect(paths(["docs/"])).toEqual(["docs/", "src/", "README.md"]));
  it("are none while nothing is read", () => expect(rows(new Map(), new Set())).toEqual([]));
});

describe("a key in the tree", () => {
  const list = rows(read, new Set(["src/", "src/lib/"])); // docs/ src/ src/lib/ src/lib/a.go src/main.go README.md
  it.each([
    [0, "ArrowUp", 0],
    [0, "ArrowDown", 1],
    [5, "ArrowDown", 5],
    [3, "Home", 0],
    [0, "End", 5],
    [1, "ArrowRight", 2],
    [0, "ArrowRight", undefined],
    [4, "ArrowRight", undefined],
    [4, "ArrowLeft", 1],
    [3, "ArrowLeft", 2],
    [5, "ArrowLeft", undefined],
    [0, "x", undefined],
  ])("from row %i with %s leads to %s", (at, key, to) => expect(step(list, at, key)).toBe(to));
});
