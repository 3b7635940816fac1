// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { displays } from "../testing/displays";
import { click, press, render, server, soon, the, all, type, words } from "../testing/page";
import ApprovalCard from "./ApprovalCard.svelte";
import type { Approval } from "./routes";
import { OpenConversation } from "./open-conversation.svelte";

const decisions = "POST /api/conversations/c1/approvals";
let conversation: OpenConversation;

function ask(more: Partial<Approval> = {}): void {
  const approval: Approval = {
    call_id: "call_1",
    event_id: 7,
    tool: "my_tool",
    display: displays.command,
    arguments: { command: "rm -rf build" },
    security_risk: 1,
    reason: "It deletes files.",
    pattern: null,
    deadline: null,
    default: null,
    ...more,
  };
  conversation.approvals = [approval];
  render(ApprovalCard, { approval, conversation });
}

/** sent is the decision that the server got, once the card has taken its answer. */
async function sent(): Promise<unknown> {
  await soon(() => expect(conversation.approvals).toEqual([]));
  expect(server.to(decisions)).toHaveLength(1);
  return server.to(decisions)[0];
}

beforeEach(() => {
  conversation = new OpenConversation("c1");
  server.on(decisions, () => ({}));
});
afterEach(() => conversation.close());

describe("the approval card", () => {
  it("shows the command, its risk and the reason", () => {
    ask();
    const card = the("alert", "Approval");
    expect(the("heading", undefined, card).textContent).toBe("Allow this call? (my_tool)");
    expect(words(card)).toContain("rm -rf build");
    expect(words(card)).toContain("Medium risk");
    expect(words(card)).toContain("It deletes files.");
  });

  it.each([
    [0, "Low risk"],
    [2, "High risk"],
    [-1, "Risk unknown"],
  ])("calls risk %i %s", (security_risk, said) => {
    ask({ security_risk });
    expect(words(the("alert"))).toContain(said);
  });

  it("shows an edit as its difference", () => {
    ask({ display: displays.replace, arguments: { command: "str_replace", path: "/w/a.txt", old_str: "one", new_str: "two" } });
    expect(words(the("alert"))).toContain("/w/a.txt");
    expect(all("row", undefined, the("group", "File changes")).map((r) => words(r))).toEqual([
      expect.stringMatching(/Removed:.*one/),
      expect.stringMatching(/Added:.*two/),
    ]);
  });

  it("makes characters visible that would hide what a command does", () => {
    ask({ arguments: { command: "ls \u202egpj" } });
    expect(words(the("alert"))).toContain("U+202E");
  });

  it("says what happens without an answer", () => {
    ask({ deadline: new Date(Date.now() + 3 * 60_000).toISOString(), default: "reject" });
    expect(words(the("alert"))).toContain("Rejected automatically in 3 minutes");
  });
});

describe("an answer", () => {
  it.each([
    ["Approve Y", "accept"],
    ["Reject N", "reject"],
  ])("by the button %s", async (button, decision) => {
    ask();
    click(the("button", new RegExp(`^${button.replace(" ", " ?")}$`)));
    expect(await sent()).toEqual({ call_id: "call_1", decision });
  });

  it.each([
    ["y", "accept"],
    ["n", "reject"],
  ])("by the key %s", async (key, decision) => {
    ask();
    press(key);
    expect(await sent()).toEqual({ call_id: "call_1", decision });
  });

  it("of high risk is not approved by a key, however often, nor by one click", async () => {
    ask({ security_risk: 2 });
    for (let i = 0; i < 3; i++) press("y");
    expect(the("button", "Approve high-risk call").getAttribute("aria-busy")).toBe("false");
    expect(words(the("alert"))).toContain("rated high risk");
    click(the("button", "Cancel"));
    click(the("button", "Approve"));
    expect(server.to(decisions)).toEqual([]);
    click(the("button", "Approve high-risk call"));
    expect(await sent()).toEqual({ call_id: "call_1", decision: "accept" });
  });

  it("of high risk is rejected by a key", async () => {
    ask({ security_risk: 2 });
    press("n");
    expect(await sent()).toEqual({ call_id: "call_1", decision: "reject" });
  });

  it("is not given by letters that are typed into a field", () => {
    ask();
    click(the("button", "Reject with a reason…"));
    press("y", the("textbox", "Reason"));
    // Requests leave later; a decision under way shows at once.
    expect(the("button", "Reject").getAttribute("aria-busy")).toBe("false");
  });

  it("rejects with a reason", async () => {
    ask();
    click(the("button", "Reject with a reason…"));
    type(the("textbox", "Reason"), " Use make clean. ");
    click(the("button", "Reject"));
    expect(await sent()).toEqual({ call_id: "call_1", decision: "reject", reason: "Use make clean." });
  });

  it("approves an edited command and keeps the other arguments", async () => {
    ask({ arguments: { command: "rm -rf build", timeout: 5 } });
    click(the("button", "Edit…"));
    type(the("textbox", "Arguments"), "rm -rf build/cache");
    click(the("button", "Approve with edits"));
    expect(await sent()).toEqual({ call_id: "call_1", decision: "accept", arguments: { command: "rm -rf build/cache", timeout: 5 } });
  });

  it("always allows what matches a pattern", async () => {
    ask({ pattern: "rm -rf build*" });
    click(the("button", "Always allow…"));
    expect(the("textbox", "Allow calls matching")).toHaveProperty("value", "rm -rf build*");
    click(the("button", "Always allow"));
    expect(await sent()).toEqual({ call_id: "call_1", decision: "always", pattern: "rm -rf build*" });
  });

  it("offers no pattern where the server has none", () => {
    ask();
    expect(all("button", "Always allow…")).toEqual([]);
  });

  it("stays open with the server's words when it is refused", async () => {
    ask();
    server.on(decisions, () => Response.json({ message: "The call was decided already." }, { status: 409 }));
    click(the("button", /^Approve/));
    expect(the("button", /^Approve/)).toHaveProperty("disabled", true);
    await soon(() => expect(words(all("alert")[1]!)).toBe("The call was decided already."));
    expect(the("button", /^Approve/)).toHaveProperty("disabled", false);
    expect(conversation.approvals).toHaveLength(1);
  });
});
