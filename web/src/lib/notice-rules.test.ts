import { expect, test } from "vitest";

import { describe as named, quiet } from "./notice-rules";

test("a browser is named by what it says of itself", () => {
  expect(named("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")).toBe("Firefox · Linux");
  expect(named("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36 Edg/140.0")).toBe(
    "Edge · Windows",
  );
  expect(named("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1 Version/18.0 Mobile Safari/604.1")).toBe(
    "Safari · iPhone",
  );
  expect(named("curl")).toBe("");
});

test("quiet hours go past midnight, in their time zone", () => {
  const night = { start: "22:00", end: "07:00", time_zone: "Europe/Berlin" };
  expect(quiet(night, new Date("2030-01-01T21:30:00Z"))).toBe(true);
  expect(quiet(night, new Date("2030-01-01T20:30:00Z"))).toBe(false);
  expect(quiet(night, new Date("2030-01-01T06:00:00Z"))).toBe(false);
  expect(quiet({ start: "09:00", end: "17:00", time_zone: "UTC" }, new Date("2030-01-01T09:00:00Z"))).toBe(true);
  expect(quiet({ start: "09:00", end: "17:00", time_zone: "UTC" }, new Date("2030-01-01T17:00:00Z"))).toBe(false);
});
