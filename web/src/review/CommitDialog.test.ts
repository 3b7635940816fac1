// @vitest-environment jsdom
import { beforeEach, describe, expect, it } from "vitest";

import { all, choose, click, descriptionOf, refused, render, server, soon, the, words } from "../testing/page";
import type { Repository } from "../workspace/routes";
import CommitDialog from "./CommitDialog.svelte";

const draft = "POST /api/conversations/c1/git/commit-message";
const commit = "POST /api/conversations/c1/git/commit";
const repository = (name: string, branch: string): Repository => ({
  name,
  branch,
  branches: [branch],
  default_branch: "main",
  head: "abc",
});
const value = (name: string) => (the("textbox", name) as HTMLInputElement).value;

async function open(message = "Change a"): Promise<void> {
  server.on(draft, () => ({ message, model: true }));
  const repositories = [repository("app", "main"), repository("lib", "work")];
  render(CommitDialog, { id: "c1", open: true, repositories, staged: false, onchange: () => {} });
  await soon(() => expect(words()).not.toContain("Drafting"));
}

describe("the commit dialog", () => {
  beforeEach(() => server.on(commit, () => ({ commit: "0123456789", branch: "work" })));

  it("commits to the branch of the chosen repository", async () => {
    await open();
    expect(value("Branch")).toBe("main");
    choose(the("combobox", "Repository"), "lib");
    expect(value("Branch")).toBe("work");
    await soon(() => expect(words()).not.toContain("Drafting"));
    click(the("button", "Commit"));
    await soon(() => expect(server.to(commit)).toEqual([expect.objectContaining({ repository: "lib", branch: "work" })]));
  });

  it.each([
    ["not valid", () => refused("branch", "The branch name is not valid.")],
    ["already exists", () => Response.json({ message: 'The branch "main" already exists.' }, { status: 409 })],
  ])("shows at the branch that it is %s", async (said, answer) => {
    server.on(commit, answer);
    await open();
    click(the("button", "Commit"));
    await soon(() => expect(descriptionOf(the("textbox", "Branch"))).toContain(said));
    expect(descriptionOf(the("textbox", "Message"))).toBe("");
  });

  it("says that there is nothing to commit", async () => {
    await open("");
    await soon(() => expect(words()).toContain("There are no changes to commit."));
    expect(all("textbox")).toEqual([]);
    expect(all("button", "Commit")).toEqual([]);
  });
});
