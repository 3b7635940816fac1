import { describe, expect, it } from "vitest";

import { imageLimits, isImage } from "../lib/images";
import { type Attachment, limits, refuse, toFile } from "./attach";

const of = (size: number, image: boolean, count = 1): Attachment[] =>
  Array.from({ length: count }, (_, i) => ({ id: `${i}`, name: "x", size, image, url: "" }));

describe("refuse", () => {
  it.each([
    ["an image", { size: imageLimits.bytes, type: "image/png" }, [], undefined],
    ["a large image", { size: imageLimits.bytes + 1, type: "image/png" }, [], "image.large"],
    ["one image too many", { size: 1, type: "image/webp" }, of(1, true, imageLimits.count), "images.many"],
    ["images too large together", { size: 4 << 20, type: "image/jpeg" }, of(4 << 20, true, 2), "images.heavy"],
    ["an image beside a large file", { size: 4 << 20, type: "image/jpeg" }, of(limits.files, false), undefined],
    ["a drawing, which is a file", { size: imageLimits.bytes + 1, type: "image/svg+xml" }, [], undefined],
    ["files too large together", { size: 1, type: "text/plain" }, of(limits.files, false), "files.heavy"],
  ])("%s", (_, file, have, expected) => expect(refuse(file, have)).toBe(expected));
});

it("only shows models what they can see", () => {
  expect(["image/png", "image/gif", "image/tiff", "text/plain", ""].map(isImage)).toEqual([true, true, false, false, false]);
});

it("gives the content back, byte for byte", async () => {
  const file = toFile({ id: "1", name: "a.bin", size: 4, image: false, url: "data:application/octet-stream;base64,AP+AfA==" });
  expect(file.name).toBe("a.bin");
  expect(file.type).toBe("application/octet-stream");
  expect([...new Uint8Array(await file.arrayBuffer())]).toEqual([0, 255, 128, 124]);
});
