import { beforeEach, expect, it, vi } from "vitest";

import { Draft } from "./draft.svelte";

/** What a tab keeps, with little room. */
const stored = new Map<string, string>();
vi.stubGlobal("sessionStorage", {
  getItem: (key: string) => stored.get(key) ?? null,
  setItem: (key: string, value: string) => {
    if (value.length > 5_000_000) throw new Error("no room");
    stored.set(key, value);
  },
  removeItem: (key: string) => stored.delete(key),
});
beforeEach(() => stored.clear());

const repository = { full_name: "ada/engine", git_provider: "gitea", main_branch: "main" };
const file = (url: string) => ({ id: "1", name: "a.txt", size: 1, image: false, url });

function written(): Draft {
  const draft = new Draft("ada");
  Object.assign(draft, {
    text: "Fix it",
    instructions: "Gently",
    repository,
    branch: "dev",
    model: "m/x",
    budget: "2",
    more: true,
    attachments: [file("data:,x")],
  });
  draft.keep();
  draft.keepFiles();
  return draft;
}

it("is there again after a reload, for the same person", () => {
  const before = written();
  const after = new Draft("ada");
  for (const key of ["text", "instructions", "repository", "branch", "model", "budget", "more", "attachments"] as const)
    expect(after[key], key).toEqual(before[key]);
  expect(new Draft("eve").hasContent).toBe(false);
});

it("keeps the place, not the task, once it was sent", () => {
  written().clear();
  const after = new Draft("ada");
  expect(after.hasContent).toBe(false);
  expect([after.repository, after.branch, after.model, after.instructions]).toEqual([repository, "dev", "", ""]);
});

it("says when files are too large to keep, and keeps the words", () => {
  const draft = written();
  draft.attachments = [file("x".repeat(4_500_000))];
  draft.keepFiles();
  expect(draft.filesKept).toBe(false);
  const after = new Draft("ada");
  expect([after.text, after.attachments]).toEqual(["Fix it", []]);
});

it("begins empty where what was kept cannot be read", () => {
  stored.set("deckhand-draft:ada", "{");
  expect(new Draft("ada").text).toBe("");
});
