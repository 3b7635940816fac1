import { expect, test } from "vitest";

import { awsKey, clouds } from "./clouds";

test("a region and its base URL follow from each other", () => {
  for (const [id, region] of [
    ["bedrock", "eu-central-1"],
    ["vertexai", "europe-west4"],
    ["vertexai", "eu"],
  ] as const)
    expect(clouds[id]?.region(clouds[id].base(region))).toBe(region);
  expect(clouds.vertexai?.base("global")).toBe("");
  expect(clouds.bedrock?.region("https://proxy.example.org/v1")).toBe("");
});

test("AWS credentials need two keys", () => {
  expect(awsKey("AKID", "", "")).toBeUndefined();
  expect(awsKey(" AKID ", "secret", "")).toBe('{"access_key_id":"AKID","secret_access_key":"secret"}');
  expect(awsKey("AKID", "secret", "token")).toContain('"session_token":"token"');
});
