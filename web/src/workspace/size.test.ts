import { expect, test } from "vitest";

import { size } from "./size";

test("sizes are in binary units, so that a limit reads as it was set", () => {
  const G = 2 ** 30;
  const sizes = [0, 512, 1024, 1536, 150 * 2 ** 20, 4 * G, 10 * G, 2048 * G];
  expect(sizes.map(size)).toEqual(["0 B", "512 B", "1 KiB", "1.5 KiB", "150 MiB", "4 GiB", "10 GiB", "2 TiB"]);
});
