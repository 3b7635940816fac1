// @vitest-environment jsdom
import { describe, expect, it } from "vitest";

import { all, click, press, render, server, soon, the, words } from "../testing/page";
import Confirm from "../ui/Confirm.svelte";
import ConversationRow from "./ConversationRow.svelte";
import type { Conversation } from "./conversation-rows";

const now = Date.parse("2026-01-02T15:00:00Z");
const id = "/api/conversations/c1";

function show(more: Partial<Conversation> = {}): string[] {
  const row = {
    conversation_id: "c1",
    title: "Fix the build",
    status: "RUNNING",
    agent_state: "running",
    last_updated_at: "2026-01-02T14:55:00Z",
    created_at: "2026-01-02T14:00:00Z",
    accumulated_cost: 0,
    ...more,
  } as Conversation;
  const happened: string[] = [];
  render(ConversationRow, { row, now, onrename: () => happened.push("rename"), ondeleted: () => happened.push("deleted") });
  return happened;
}

/** pick chooses an item of the row's menu. */
function pick(name: string): void {
  click(the("button", "Actions for Fix the build"));
  click(the("menuitem", name));
}

describe("the row of a conversation", () => {
  it("leads to it and says what it is about", () => {
    show({
      selected_repository: "octo/app",
      selected_branch: "fix",
      accumulated_cost: 1.5,
      pull_requests: [{ number: 7, title: "Fix", url: "https://example.org/7" }] as Conversation["pull_requests"],
    });
    expect(the("link", "Fix the build").getAttribute("href")).toBe("/conversations/c1");
    expect(the("link", "Pull request #7").getAttribute("href")).toBe("https://example.org/7");
    for (const said of ["octo/app", "fix", "$1.50", "5 minutes ago"]) expect(words()).toContain(said);
  });

  it.each([
    ["STARTING", "running", null, "Starting"],
    ["RUNNING", "running", null, "Working"],
    ["RUNNING", "awaiting_user_confirmation", null, "Needs approval"],
    ["RUNNING", "awaiting_user_input", null, "Done"],
    ["RUNNING", "paused", null, "Paused"],
    ["RUNNING", "error", null, "Failed"],
    ["STOPPED", "running", null, "Stopped"],
    ["STOPPED", "error", "STATUS$ERROR", "Failed"],
  ] as const)("that is %s and %s (%s) says %s", (status, agent_state, error_id, said) => {
    show({ status, agent_state, error_id });
    expect(words(the("listitem"))).toBe(`Fix the build ${said} 5 minutes ago 5 minutes ago`);
  });

  it("says why the agent failed, and only then", () => {
    show({ agent_state: "error", reason: "The key was refused." });
    expect(words()).toContain("The key was refused.");
  });

  it("keeps an old reason to itself", () => {
    show({ agent_state: "running", reason: "The key was refused." });
    expect(words()).not.toContain("The key was refused.");
  });

  it("has a name without a title", () => {
    show({ title: "" });
    expect(the("link", "Untitled")).toBeTruthy();
  });
});

describe("its menu", () => {
  it("opens and closes, and the focus goes with it", () => {
    show();
    const button = the("button", "Actions for Fix the build");
    click(button);
    expect(document.activeElement).toBe(the("menuitem", "Rename"));
    press("ArrowDown");
    expect(document.activeElement).toBe(the("menuitem", "Stop"));
    press("Escape");
    expect(all("menu")).toEqual([]);
    expect(document.activeElement).toBe(button);
  });

  it.each([
    ["RUNNING", "Stop", `POST ${id}/stop`],
    ["STOPPED", "Start", `POST ${id}/start`],
  ] as const)("of one that is %s has %s", async (status, item, request) => {
    server.on(request, () => ({}));
    show({ status });
    pick(item);
    await soon(() => expect(server.to(request)).toHaveLength(1));
  });

  it("renames", () => {
    const happened = show();
    pick("Rename");
    expect(happened).toEqual(["rename"]);
  });

  it("deletes when that was confirmed", async () => {
    server.on(`DELETE ${id}`, () => ({}));
    render(Confirm, {});
    const happened = show();
    pick("Delete");
    expect(words(the("dialog", "Delete conversation?"))).toContain("“Fix the build” and its workspace will be permanently deleted.");
    click(the("button", "Delete"));
    await soon(() => expect(happened).toEqual(["deleted"]));
    expect(server.to(`DELETE ${id}`)).toHaveLength(1);
  });

  it("deletes nothing when that was not", async () => {
    render(Confirm, {});
    show();
    pick("Delete");
    click(the("button", "Cancel"));
    await soon(() => expect(all("dialog")).toEqual([]));
    expect(server.sent).toEqual([]);
  });
});
