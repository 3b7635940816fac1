// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import type { Display, Event, EventOf } from "../lib/events";
import { displays } from "../testing/displays";
import { all, click, render, server, soon, the, words } from "../testing/page";
import Entry from "./Entry.svelte";
import { OpenConversation } from "./open-conversation.svelte";

let conversation: OpenConversation;
beforeEach(() => (conversation = new OpenConversation("c1")));
afterEach(() => conversation.close());

const event = <K extends Event["kind"]>(id: number, kind: K, payload: EventOf<K>["payload"]) =>
  ({ id, kind, time: `2026-01-02T15:04:0${id}.000000Z`, payload }) as Event;
const called = (display: Display, args: object, more = {}) =>
  event(1, "tool_called", {
    id: "call_1",
    name: "my_tool",
    args,
    risk: -1,
    answer: 0,
    totals: {},
    display,
    ...more,
  });
const returned = (display: Display, more: object) =>
  event(3, "tool_returned", { id: "call_1", name: "my_tool", display, cause: 1, outcome: "ok", ...more });

/** show renders what the page makes of events. */
function show(...events: Event[]): void {
  for (const e of events) conversation.log.append(e);
  for (const item of conversation.log.items) render(Entry, { item, conversation });
}

describe("a message", () => {
  it("of the person is shown under its heading, with its files", () => {
    show(event(1, "user_said", { text: "Fix **this**", files: ["/workspace/notes.txt"] }));
    expect(the("heading", "You")).toBeTruthy();
    expect(document.querySelector("article, p")?.textContent).toBe("Fix **this**");
    expect(words(the("listitem"))).toBe("notes.txt");
  });

  it("of the agent is markdown, without anything that runs", () => {
    show(
      event(1, "model_answered", {
        call: "c1",
        text: "See `a.go`.\n\n<img src=x onerror=alert(1)><script>alert(1)</" + "script>",
        usage: {},
        totals: {},
      }),
    );
    expect(the("heading", "Agent")).toBeTruthy();
    expect(document.querySelector("code")?.textContent).toBe("a.go");
    expect(document.querySelector("script, [onerror]")).toBeNull();
  });

  it("can be forked from", async () => {
    server.on("POST /api/conversations/c1/fork", () => ({ conversation_id: "c2" }));
    show(event(4, "user_said", { text: "Fix" }));
    click(the("button", "Message actions"));
    expect(all("menuitem").map((m) => words(m))).toEqual(["Copy text", "Restore conversation to before this message", "Fork from here"]);
    click(the("menuitem", "Fork from here"));
    await soon(() => expect(server.to("POST /api/conversations/c1/fork")).toEqual([{ event_id: 4, title: null }]));
    await soon(() => expect(location.pathname).toBe("/conversations/c2"));
  });
});

describe("a checkpoint", () => {
  it("is offered on messages, and its restore can be undone", async () => {
    server.on("POST /api/conversations/c1/restore", () => ({ kept: [] }));
    show(event(4, "user_said", { text: "Fix" }), event(9, "checkpointed", { checkpoint: 2, up_to: 8, files: 3, changed: 1, bytes: 10 }));
    click(the("button", "Message actions"));
    click(the("menuitem", "Restore files to before this message"));
    await soon(() =>
      expect(server.to("POST /api/conversations/c1/restore")).toEqual([
        { event_id: 3, files: true, conversation: false, own_changes: "refuse" },
      ]),
    );
  });

  it("that was restored tells so", async () => {
    server.on("POST /api/conversations/c1/restore/undo", () => ({ kept: [] }));
    show(event(8, "restored", { action: "restore", point: 3, files: true, checkpoint: 1, before: 2, changed: 5 }));
    expect(words(document.body)).toContain("Files restored: changed files and folders: 5");
    expect(all("button", "Show")).toEqual([]);
    click(the("button", "Undo"));
    await soon(() => expect(server.to("POST /api/conversations/c1/restore/undo")).toHaveLength(1));
  });
});

describe("a restore of the conversation", () => {
  const restored = (id: number, action: "restore" | "undo", point: number) =>
    event(id, "restored", { action, point, conversation: true } as EventOf<"restored">["payload"]);

  it("hides what the agent no longer sees, until it is shown", () => {
    conversation.log.append(event(4, "user_said", { text: "Fix\nall" }));
    conversation.log.append(event(5, "model_answered", { call: "c", text: "Fixed.", usage: {}, totals: {} }));
    conversation.log.append(restored(6, "restore", 3));
    const ids = () => conversation.shown().map((i) => i.id);
    expect(ids()).toEqual([6]);
    render(Entry, { item: conversation.shown()[0]!, conversation });
    expect(words()).toContain("Restored to before “Fix…”: 2 later items hidden from the agent");
    click(the("button", "Show"));
    expect(ids()).toEqual([4, 5, 6]);
    click(the("button", "Hide"));
    expect(ids()).toEqual([6]);
    conversation.log.append(restored(7, "undo", 3));
    expect(ids()).toEqual([4, 5, 7]);
    expect(conversation.shown()[2]!.hides).toBe(0);
  });
});

describe("a command", () => {
  it("shows its output, its exit code and how long it took", () => {
    show(
      called(displays.command, { command: "make" }),
      returned(displays.command, { output: "all \u001b[31mgood\u001b[0m\n", details: { exit_code: 0 } }),
    );
    const card = the("region", "Command make");
    expect(document.querySelector('pre[aria-label="Output"]')!.textContent).toBe("all good\n");
    expect(words(card)).toContain("exit code 0");
    expect(words(card)).toContain("2 s");
    expect(words(card)).not.toContain("Running");
  });

  it("says that it failed", () => {
    show(
      called(displays.command, { command: "make" }),
      returned(displays.command, { outcome: "failed", output: "no rule", details: { exit_code: 2 } }),
    );
    expect(words(the("region", "Command make"))).toMatch(/exit code 2.*no rule/);
  });

  it("that runs shows what it printed so far", () => {
    show(called(displays.command, { command: "make" }));
    conversation.log.addDelta({ call: "call_1", offset: 0, text: "compiling" });
    render(Entry, { item: conversation.log.items[0]!, conversation });
    const card = all("region", "Command make")[1]!;
    expect(words(card)).toContain("Running");
    expect(words(card)).toContain("compiling");
  });

  it("that waits for the person says so, with its risk", () => {
    show(called(displays.command, { command: "rm x" }, { awaits: true, risk: 2 }));
    expect(words(the("region", "Command rm x"))).toMatch(/High risk.*Needs approval/);
  });

  it("folds long output, and its head closes it", () => {
    const lines = Array.from({ length: 40 }, (_, i) => `line ${i + 1}.`);
    show(
      called(displays.command, { command: "make" }),
      returned(displays.command, { output: lines.join("\n"), details: { exit_code: 0 } }),
    );
    const card = the("region", "Command make");
    expect(words(card)).not.toContain("line 20.");
    expect(words(card)).toContain("line 40.");
    click(the("button", "Show 26 more lines"));
    expect(words(card)).toContain("line 20.");
    click(the("button", /^Command make/));
    expect(words(card)).not.toContain("line 40.");
  });
});

describe("an edit", () => {
  const args = { command: "str_replace", path: "/w/a.txt", old_str: "one", new_str: "two" };

  it("shows its difference, and how many lines changed", () => {
    show(
      called(displays.replace, args),
      returned(displays.replace, {
        output: "done",
        details: { path: "/w/a.txt", prev_exist: true, old_content: "zero\none\n", new_content: "zero\ntwo\n" },
      }),
    );
    const card = the("region", "Edited /w/a.txt");
    expect(words(card)).toContain("+1 −1");
    const rows = all("row", undefined, the("group", "File changes")).map((r) => words(r));
    expect(rows).toContainEqual(expect.stringMatching(/Removed:.*one$/));
    expect(rows).toContainEqual(expect.stringMatching(/Added:.*two$/));
  });

  it("says when a file was created", () => {
    show(
      called(displays.create, { command: "create", path: "/w/b.txt", file_text: "new" }),
      returned(displays.create, {
        output: "done",
        details: { path: "/w/b.txt", prev_exist: false, old_content: "", new_content: "new" },
      }),
    );
    expect(words(the("region", "Created /w/b.txt"))).toContain("Added:+new");
  });

  it("that failed says why, and claims no change", () => {
    show(called(displays.replace, args), returned(displays.replace, { outcome: "failed", output: "old_str is not in the file" }));
    const card = the("region", "Could not edit /w/a.txt");
    expect(words(card)).toContain("old_str is not in the file");
    expect(words(card)).not.toContain("+1");
    expect(all("group", "File changes")).toEqual([]);
  });
});

describe("a tool that the page never heard of", () => {
  const output = { output: "out" };
  it.each<[string, Display, object, object, string | RegExp]>([
    ["a command", displays.command, { command: "ls" }, output, "Command ls"],
    ["typed input", { ...displays.command, input: true }, { command: "y" }, output, "Input y"],
    ["code", displays.code, { code: "1 + 1" }, output, "Code 1 + 1"],
    ["a file that is read", displays.read, { path: "/w/a", view_range: [1, 9] }, output, "Read /w/a (1–9)"],
    [
      "a file that is created",
      displays.create,
      { path: "/w/a", file_text: "x" },
      { details: { diff: "@@ -0,0 +1 @@\n+x" } },
      "Created /w/a",
    ],
    ["a page", displays.page, { url: "https://a.test/" }, { details: { url: "https://a.test/b" } }, "Browser https://a.test/b"],
    ["steps on a page", displays.steps, { code: "noop()" }, { details: { url: "" } }, "Browser noop()"],
    ["a task list", displays.checklist, { task_list: [{ title: "Sail", status: "done" }] }, output, "Tasks 1 of 1 tasks done"],
    ["a thought", displays.thought, { thought: "Hm." }, output, "Thought Hm."],
    ["last words", displays.message, { message: "Done." }, output, "Done"],
    ["a rejected task", displays.rejection, {}, output, "Refused by the agent"],
    ["another agent", displays.conversation, { agent: "Mate", inputs: { task: "Sail" } }, output, /Mate/],
    ["a title of its own", { ...displays.plain, title: "hoist the red flag" }, { flag: "red" }, output, "my_tool hoist the red flag"],
    ["a main argument", { ...displays.plain, main: "flag" }, { flag: "red" }, output, "my_tool red"],
    ["nothing declared", displays.plain, { flag: "red" }, output, 'my_tool { "flag": "red" }'],
    ["a content of a newer server", { ...displays.plain, content: "hologram" as "plain" }, {}, output, "my_tool"],
  ])("gets the card of %s", (_, display, args, more, name) => {
    show(called(display, args), returned(display, more));
    expect(the("region", name)).toBeTruthy();
  });

  it("is not shown if it is hidden", () => {
    show(called(displays.hidden, {}), returned(displays.hidden, {}));
    expect(conversation.log.items).toEqual([]);
  });
});

describe("a notice", () => {
  it("of a failure is an alert with the reason", () => {
    show(event(1, "noted", { error: true, message: "The model did not answer." } as EventOf<"noted">["payload"]));
    expect(words(the("alert"))).toContain("Failed: The model did not answer.");
    expect(the("button", "Copy")).toBeTruthy();
  });

  it("of a turn that failed gives the reason", () => {
    show(event(1, "turn_ended", { up_to: 0, state: "error", reason: "The key was refused." }));
    expect(words(the("alert"))).toContain("Failed: The key was refused.");
  });

  it("of a pause is none", () => {
    show(event(1, "paused", {}));
    expect(words()).toContain("Paused");
    expect(all("alert")).toEqual([]);
  });

  it("with a long text shows it when it is opened", () => {
    show(event(1, "condensed", { summary: "Much was done." } as EventOf<"condensed">["payload"]));
    expect(words(the("group"))).toContain("Earlier history summarised");
    expect(words()).not.toContain("Much was done.");
  });

  it("of the system prompt is none", () => {
    show(event(1, "briefed", { prompt: "You are an agent." } as EventOf<"briefed">["payload"]));
    expect(conversation.log.items).toEqual([]);
  });

  it("of a failure is one, with the button that fixes it", () => {
    show(
      event(1, "model_failed", { class: "authentication", message: "The key was refused." } as EventOf<"model_failed">["payload"]),
      event(2, "turn_ended", { up_to: 0, state: "error", error_id: "STATUS$ERROR_LLM_AUTHENTICATION" } as EventOf<"turn_ended">["payload"]),
    );
    expect(all("alert").map((a) => words(a))).toEqual([expect.stringContaining("Failed: The key was refused.")]);
    expect(the("button", "Change API key")).toBeTruthy();
  });

  it("of a failure after retries has their number", () => {
    show(
      event(1, "model_failed", { call: "a", class: "rate", message: "Try again.", retried: true } as EventOf<"model_failed">["payload"]),
      event(2, "noted", { id: "STATUS$LLM_RETRY", message: "Try again.", retry: 1, retries: 4 } as EventOf<"noted">["payload"]),
      event(3, "model_asked", { call: "b", model: "x", up_to: 0 }),
      event(4, "turn_ended", { up_to: 0, state: "error", reason: "Try again." } as EventOf<"turn_ended">["payload"]),
    );
    expect(all("alert").map((a) => words(a))).toEqual([expect.stringContaining("Failed: Try again. (1 retry)")]);
  });

  it("of a pause that only made room for a message is none", () => {
    show(event(1, "paused", {}), event(2, "resumed", {}));
    expect(conversation.log.items).toEqual([]);
  });
});
