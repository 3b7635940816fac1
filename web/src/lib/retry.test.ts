import { expect, test } from "vitest";

import { once } from "./retry";

test("what got no answer is sent again with its key, and what got one with another", async () => {
  const keys: string[] = [];
  const send = (fails?: Error) => (key: string) => {
    keys.push(key);
    return fails ? Promise.reject(fails) : Promise.resolve("done");
  };
  await expect(once("a", send(new TypeError("lost")))).rejects.toThrow("lost");
  await expect(once("a", send(new TypeError("lost")))).rejects.toThrow("lost");
  await once("b", send());
  await once("a", send());
  await once("a", send());
  await expect(once("a", send(new Error("refused")))).rejects.toThrow("refused");
  await once("a", send());
  expect([keys[1], keys[3]]).toEqual([keys[0], keys[0]]);
  expect(new Set(keys).size).toBe(5);
});
