import { afterEach, expect, it, vi } from "vitest";

import { tabStorage } from "./storage";

afterEach(() => vi.unstubAllGlobals());

it("remembers for the page where the browser must not", () => {
  vi.stubGlobal("sessionStorage", undefined);
  expect(tabStorage.get("a")).toBe(null);
  expect(tabStorage.set("a", "1")).toBe(false);
  expect(tabStorage.get("a")).toBe("1");
  tabStorage.remove("a");
  expect(tabStorage.get("a")).toBe(null);
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
  expect(tabStorage.set("a", "longer")).toBe(false);
  expect([tabStorage.get("a"), kept.has("a")]).toEqual(["longer", false]);
  expect(tabStorage.set("a", "new")).toBe(true);
  expect([tabStorage.get("a"), kept.get("a")]).toEqual(["new", "new"]);
});

it("has no rival: nothing else asks the browser's stores", () => {
  const all = import.meta.glob<string>("../**/*.{ts,svelte}", { query: "?raw", import: "default", eager: true });
  const asking = Object.keys(all).filter(
    (name) => !/storage(\.test)?\.ts$|\.test\.ts$/.test(name) && /\b(local|session)Storage\b/.test(all[name]!),
  );
  expect(asking).toEqual([]);
});
