import { afterEach, expect, it, vi } from "vitest";

import { inTab } from "./keep";

afterEach(() => vi.unstubAllGlobals());

it("remembers for the page where the browser must not", () => {
  vi.stubGlobal("sessionStorage", undefined);
  expect(inTab.get("a")).toBe(null);
  expect(inTab.set("a", "1")).toBe(false);
  expect(inTab.get("a")).toBe("1");
  inTab.drop("a");
  expect(inTab.get("a")).toBe(null);
});

it("has what was said last, also where there is no room for it", () => {
  const kept = new Map([["a", "old"]]);
  vi.stubGlobal("sessionStorage", {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => {
      if (value.length > 3) throw new Error("no room");
      kept.set(name, value);
    },
    removeItem: (name: string) => kept.delete(name),
  });
  expect(inTab.set("a", "longer")).toBe(false);
  expect([inTab.get("a"), kept.has("a")]).toEqual(["longer", false]);
  expect(inTab.set("a", "new")).toBe(true);
  expect([inTab.get("a"), kept.get("a")]).toEqual(["new", "new"]);
});

it("has no rival: nothing else asks the browser's stores", () => {
  const all = import.meta.glob<string>("../**/*.{ts,svelte}", { query: "?raw", import: "default", eager: true });
  const asking = Object.keys(all).filter(
    (name) => !/keep(\.test)?\.ts$|\.test\.ts$/.test(name) && /\b(local|session)Storage\b/.test(all[name]!),
  );
  expect(asking).toEqual([]);
});
