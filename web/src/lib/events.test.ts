import { describe, expect, test } from "vitest";

import { displays } from "../testing/displays";
import { type Event, type EventOf, resultOf, stateOf } from "./events";

const time = "2026-01-02T15:04:05.000000Z";
const returned = (payload: Partial<EventOf<"tool_returned">["payload"]>) =>
  resultOf({
    id: 9,
    kind: "tool_returned",
    time,
    payload: { id: "c", name: "my_tool", display: displays.command, cause: 1, outcome: "ok", ...payload },
  });

describe("a result", () => {
  test.each<[string, Parameters<typeof returned>[0], boolean]>([
    ["ended", { details: { exit_code: 0 } }, false],
    ["failed, and its code tells", { outcome: "failed", details: { exit_code: 1 } }, false],
    ["failed before it ran", { outcome: "failed", output: "no such folder" }, true],
    ["was interrupted after it had printed", { outcome: "cancelled", partial: true, output: "so far" }, false],
    ["was interrupted", { outcome: "cancelled" }, true],
    ["of code was interrupted", { display: displays.code, outcome: "cancelled", partial: true }, true],
    ["was rejected", { outcome: "rejected" }, true],
    ["is unknown", { outcome: "unknown" }, true],
    ["of an edit failed", { display: displays.replace, outcome: "failed" }, true],
    ["is a page that failed", { display: displays.steps, outcome: "failed", details: { url: "https://a.test/" } }, false],
    ["is no page", { display: displays.page, outcome: "failed", details: { url: "" } }, true],
    [
      "of an MCP tool says itself that it failed",
      { display: displays.plain, outcome: "failed", details: { result: { isError: true } } },
      false,
    ],
    ["of an MCP tool that did not answer", { display: displays.plain, outcome: "failed" }, true],
  ])("that %s", (_, payload, failed) => expect(returned(payload).failed).toBe(failed));

  test("of a command has its exit code", () => {
    expect(returned({ details: { exit_code: -1 } }).exit).toBe(-1);
    expect(returned({}).exit).toBe(0);
    expect(returned({ outcome: "cancelled", partial: true }).exit).toBe(130);
    expect(returned({ args: { command: "ls -a" } }).ran).toBe("ls -a");
    const typed = resultOf({ id: 9, kind: "command_ended", time, payload: { cause: 1, command: "ls", outcome: "ok" } });
    expect(typed).toMatchObject({ exit: -1, ran: "ls", failed: false });
  });
});

describe("the state", () => {
  const state = (kind: string, payload: object = {}) =>
    stateOf({ id: 1, kind, time, payload } as Event)
      ?.map((s) => s ?? "")
      .join(" ");
  test.each([
    ["created", {}, "loading"],
    ["resumed", {}, "running"],
    ["approval_asked", { id: "c", reason: "risky" }, "awaiting_user_confirmation risky"],
    ["approval_asked", { id: "c", told: true }, undefined],
    ["approval_given", { approved: true }, "user_confirmed "],
    ["approval_given", { approved: true, late: true }, "running "],
    ["approval_given", { approved: false, reason: "no" }, "user_rejected no"],
    ["turn_ended", { state: "error", error_id: "STATUS$ERROR" }, "error STATUS$ERROR"],
    ["failed", { id: "X", reason: "no sandbox" }, "error no sandbox"],
    ["user_said", { text: "hi" }, undefined],
  ])("after %s %j", (kind, payload, want) => expect(state(kind, payload)).toBe(want));
});
