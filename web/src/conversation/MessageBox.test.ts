// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import Queue from "../composer/Queue.svelte";
import { Draft } from "../home/draft.svelte";
import { router } from "../lib/router.svelte";
import { tabStorage } from "../lib/storage";
import { toasts } from "../lib/toasts.svelte";
import { all, click, descriptionOf, leave, press, render, server, soon, the, type, words } from "../testing/page";
import MessageBox from "./MessageBox.svelte";
import type { Conversation } from "./routes";
import SearchBar from "./SearchBar.svelte";
import { OpenConversation } from "./open-conversation.svelte";

const events = "POST /api/conversations/c1/events";
let conversation: OpenConversation;
let told: number;

function show(state: string): void {
  conversation.status.state = state;
  render(MessageBox, { conversation, onsent: () => told++ });
}

const field = () => the("textbox", "Message the agent") as HTMLTextAreaElement;
const send = () => the("button", "Send") as HTMLButtonElement;
/** idle is whether nothing is being sent: requests leave later, so their absence says nothing yet. */
const idle = () => send().getAttribute("aria-busy") === "false";
const message = (content: string) => ({ action: "message", args: { content, image_urls: null, file_urls: null } });

beforeEach(() => {
  tabStorage.remove("deckhand-draft-c1");
  conversation = new OpenConversation("c1");
  told = 0;
  server.on(events, () => ({}));
});
afterEach(() => conversation.close());

describe("a message", () => {
  it("is sent by Enter, and the field is empty then", async () => {
    show("awaiting_user_input");
    type(field(), "\n Fix the build ");
    press("Enter", field());
    await soon(() => expect(told).toBe(1));
    expect(server.to(events)).toEqual([message(" Fix the build")]);
    expect(field().value).toBe("");
    expect(document.activeElement).toBe(field());
  });

  it("is sent by the button", async () => {
    show("awaiting_user_input");
    type(field(), "Go on");
    click(send());
    await soon(() => expect(told).toBe(1));
    expect(server.to(events)).toEqual([message("Go on")]);
  });

  it.each([
    ["Shift+Enter", { shiftKey: true }],
    ["Enter of an input method", { isComposing: true }],
  ])("is not sent by %s", (_, keys) => {
    show("awaiting_user_input");
    type(field(), "half a");
    press("Enter", field(), keys);
    expect(idle()).toBe(true);
    expect(field().value).toBe("half a");
  });

  it("cannot be sent while it is empty", () => {
    show("awaiting_user_input");
    expect(send().disabled).toBe(true);
    type(field(), "  ");
    expect(send().disabled).toBe(true);
    press("Enter", field());
    expect(idle()).toBe(true);
    type(field(), "words");
    expect(send().disabled).toBe(false);
  });

  it("is not sent twice", async () => {
    let answer: (body: object) => void = () => {};
    server.on(events, () => new Promise((done) => (answer = done)));
    show("awaiting_user_input");
    type(field(), "once");
    press("Enter", field());
    press("Enter", field());
    expect(send().disabled).toBe(true);
    await soon(() => expect(server.to(events)).toHaveLength(1));
    answer({});
    await soon(() => expect(told).toBe(1));
    expect(server.to(events)).toHaveLength(1);
  });

  it("stays in the field with the server's words when it is refused", async () => {
    server.on(events, () => Response.json({ message: "Choose a model first." }, { status: 400 }));
    show("awaiting_user_input");
    type(field(), "words");
    press("Enter", field());
    await soon(() => expect(words(the("alert"))).toBe("Choose a model first."));
    expect(descriptionOf(field())).toBe("Choose a model first.");
    expect(field().value).toBe("words");
    expect(told).toBe(0);
  });

  it("is kept as a draft until it is sent, for its conversation alone", async () => {
    show("awaiting_user_input");
    type(field(), "not yet");
    leave();
    show("awaiting_user_input");
    expect(field().value).toBe("not yet");
    leave();
    render(MessageBox, { conversation: new OpenConversation("c2"), onsent: () => {} });
    expect(field().value).toBe("");
    leave();
    show("awaiting_user_input");
    press("Enter", field());
    await soon(() => expect(told).toBe(1));
    leave();
    show("awaiting_user_input");
    expect(field().value).toBe("");
  });

  it("waits in the queue while the agent works", () => {
    show("running");
    expect(field().placeholder).toBe("Message the agent (read after this step)");
    type(field(), "also this");
    expect(send().disabled).toBe(false);
  });

  it("that is queued is edited, moved, deleted and sent now", async () => {
    const at = "/api/conversations/c1/queue";
    const queued = (id: number, content: string) => ({ event_id: id, content, image_urls: null, said_at: "2026-01-02T15:04:05Z" });
    conversation.status.state = "running";
    conversation.waiting = [queued(8, "first"), queued(9, "second")];
    for (const [call, answer] of [
      [`PATCH ${at}/8`, [queued(10, "edited"), queued(11, "second")]],
      [`PATCH ${at}/11`, [queued(12, "second"), queued(13, "edited")]],
      [`DELETE ${at}/12`, [queued(13, "edited")]],
      [`PATCH ${at}/13`, []],
    ] as const)
      server.on(call, () => ({ messages: answer, has_more: false }));
    render(Queue, { conversation });
    expect(the("region", "2 queued messages")).toBeTruthy();
    expect(the("button", "Send all now").title).toBe("Interrupts the current step. The agent then reads the queue in this order.");
    const shown = () => all("listitem").map((m) => words(m));
    const nth = (name: string, i = 0) => all("button", name)[i]!;
    click(nth("Edit message"));
    await soon(() => type(the("textbox", "Edit message") as HTMLTextAreaElement, "edited"));
    press("Enter", the("textbox", "Edit message"));
    await soon(() => expect(shown()).toEqual(["edited", "second"]));
    expect(server.to(`PATCH ${at}/8`)).toEqual([{ content: "edited" }]);
    press("ArrowUp", nth("Delete message", 1), { altKey: true });
    await soon(() => expect(shown()).toEqual(["second", "edited"]));
    expect(server.to(`PATCH ${at}/11`)).toEqual([{ position: 0 }]);
    await soon(() => expect(document.activeElement).toBe(nth("Move down")));
    click(nth("Delete message"));
    await soon(() => expect(shown()).toEqual(["edited"]));
    click(nth("Send now"));
    await soon(() => expect(server.to(`PATCH ${at}/13`)).toEqual([{ send_now: true }]));
  });

  it("that is edited too late goes into the message box", async () => {
    conversation.status.state = "running";
    conversation.waiting = [{ event_id: 8, content: "first", image_urls: null, said_at: "2026-01-02T15:04:05Z" }];
    server.on("PATCH /api/conversations/c1/queue/8", () => Response.json({ message: "The agent has already read it." }, { status: 409 }));
    render(Queue, { conversation });
    click(the("button", "Edit message"));
    await soon(() => type(the("textbox", "Edit message") as HTMLTextAreaElement, "much better"));
    press("Enter", the("textbox", "Edit message"));
    await soon(() => expect(conversation.draft).toBe("much better"));
  });

  it.each([
    ["a file change", true, true],
    ["a file change whose checkpoint is being made", true, false],
    ["no file change", false, false],
  ])("is taken back with its turn by /undo after %s, and comes back by /redo", async (_, files, known) => {
    const restore = "POST /api/conversations/c1/restore";
    const asks = { event_id: 9, files: true, conversation: true, own_changes: "refuse" };
    let refusals = files ? 0 : 1;
    server.on(restore, () =>
      refusals-- > 0 ? Response.json({ message: "The conversation has no files yet." }, { status: 409 }) : { kept: [] },
    );
    server.on(`${restore}/undo`, () => ({ kept: [] }));
    const happens = (id: number, kind: string, payload: object) =>
      conversation.log.append({ id, time: "2026-01-02T15:04:05Z", kind, payload } as never);
    happens(2, "user_said", { text: "first" });
    happens(3, "turn_began", {});
    happens(9, "turn_ended", { up_to: 2, state: "awaiting_user_input" });
    happens(10, "user_said", { text: "second" });
    happens(11, "turn_began", {});
    happens(12, "user_said", { text: "and this" });
    happens(13, "model_asked", { call: "m", model: "x", up_to: 12 });
    happens(14, "turn_ended", { up_to: 12, state: "awaiting_user_input" });
    if (known) happens(15, "checkpointed", { checkpoint: 2, up_to: 14, files: 3, changed: 1, bytes: 10 });
    show("awaiting_user_input");
    type(field(), "/undo");
    press("Escape", field());
    press("Enter", field());
    await soon(() => expect(server.to(restore)).toEqual(files ? [asks] : [asks, { ...asks, files: false }]));
    await soon(() => expect(field().value).toBe("second\n\nand this"));
    happens(16, "restored", { action: "restore", point: 9, files, conversation: true });
    expect(conversation.log.items.filter((i) => i.kind === "user").map((i) => [i.text, !!i.hiddenBy])).toEqual([
      ["first", false],
      ["second", true],
      ["and this", true],
    ]);
    type(field(), "/redo");
    press("Escape", field());
    press("Enter", field());
    await soon(() => expect(server.to(`${restore}/undo`)).toHaveLength(1));
    await soon(() => expect(field().value).toBe(""));
    toasts.all.splice(0);
    happens(17, "restored", { action: "undo", point: 9, files, conversation: true });
    type(field(), "/redo");
    press("Escape", field());
    press("Enter", field());
    await soon(() => expect(toasts.all.map((toast) => toast.text)).toEqual(["Nothing to redo."]));
    expect(server.to(`${restore}/undo`)).toHaveLength(1);
    toasts.all.splice(0);
    happens(18, "restored", { action: "redo", point: 9, files, conversation: true });
    happens(19, "user_said", { text: "on we go" });
    await soon(() => expect(field().value).toBe(""));
    type(field(), "/redo");
    press("Escape", field());
    press("Enter", field());
    await soon(() => expect(toasts.all.map((toast) => toast.text)).toContain("Nothing to redo."));
    expect(server.to(`${restore}/undo`)).toHaveLength(1);
  });

  it("keeps the indentation of several lines", async () => {
    show("awaiting_user_input");
    type(field(), "\n  if x:\n    y\n\n");
    press("Enter", field());
    await soon(() => expect(server.to(events)).toEqual([message("  if x:\n    y")]));
  });

  it("that is a command of the repository is run with its arguments", async () => {
    const commands = "/api/conversations/c1/commands";
    const one = (name: string, file: string | null) => ({
      name,
      description: "Fix an issue",
      argument_hint: "[number]",
      source: "repository",
      file,
    });
    server.on(`GET ${commands}`, () => ({ commands: [one("fix", ".deckhand/commands/fix.md")] }));
    server.on(`POST ${commands}`, () => ({ success: true }));
    show("awaiting_user_input");
    type(field(), "/fi");
    await soon(() => expect(all("option").map((o) => words(o))).toEqual(["/fix [number] · Fix an issue"]));
    press("Tab", field());
    await soon(() => expect(field().value).toBe("/fix "));
    type(field(), "/fix 12 now");
    press("Enter", field());
    await soon(() =>
      expect(server.to(`POST ${commands}`)).toEqual([{ name: "fix", arguments: "12 now", image_urls: null, file_urls: null }]),
    );
    await soon(() => expect(field().value).toBe(""));
    type(field(), "/fix");
    await soon(() => expect(all("option")).toHaveLength(1));
    type(field(), "/fixx");
    press("Enter", field()); // before the list is up to date
    await soon(() => expect(words(the("alert"))).toContain("No command /fixx."));
    type(field(), "/fixx 12");
    press("Enter", field());
    await soon(() => expect(words(the("alert"))).toContain("No command /fixx. Did you mean /fix?"));
    expect(server.to(events)).toEqual([]);
    click(the("button", "Run /fix"));
    await soon(() => expect(server.to(`POST ${commands}`)).toHaveLength(2));
    await soon(() => expect(field().value).toBe(""));
    type(field(), "/nothing of this name");
    press("Enter", field());
    await soon(() => expect(words(the("alert"))).toContain("No command /nothing."));
    type(field(), "/nothing of this name!");
    expect(all("alert")).toEqual([]);
    press("Enter", field());
    await soon(() => click(the("button", "Send anyway")));
    await soon(() => expect(server.to(events)).toEqual([message("/nothing of this name!")]));
  });

  it("mentions files, symbols and conversations after an @", async () => {
    server.on("GET /api/conversations/c1/mentions", () => ({
      mentions: [
        { kind: "file", name: "app.ts", path: "src/app.ts", line: 0 },
        { kind: "symbol", name: "runApp", path: "src/app.ts", line: 7 },
      ],
    }));
    server.on("GET /api/conversations", () => ({
      results: [{ conversation_id: "c9", title: "The app", selected_repository: null }],
      next_page_id: null,
    }));
    server.on("GET /api/starters", () => ({ enabled: true, tasks: [] }));
    show("awaiting_user_input");
    type(field(), "look at @app");
    await soon(() => expect(all("option").map((o) => words(o))).toEqual(["app.ts src/app.ts", "runApp src/app.ts:7", "The app"]));
    press("ArrowDown", field());
    press("Enter", field());
    await soon(() => expect(field().value).toBe("look at @src/app.ts:7 (runApp) "));
    expect(server.to(events)).toEqual([]);
  });

  it("of before comes back with ArrowUp", async () => {
    show("awaiting_user_input");
    for (const [id, said] of [
      [1, "first"],
      [2, "second"],
    ] as const)
      conversation.log.append({ id, time: "2026-01-02T15:04:05Z", kind: "user_said", payload: { text: said } } as never);
    press("ArrowUp", field());
    await soon(() => expect(field().value).toBe("second"));
    press("ArrowUp", field());
    await soon(() => expect(field().value).toBe("first"));
    press("ArrowDown", field());
    press("ArrowDown", field());
    await soon(() => expect(field().value).toBe(""));
  });
});

describe("a command of the page", () => {
  const run = (text: string) => {
    type(field(), text);
    press("Escape", field());
    press("Enter", field());
  };
  beforeEach(() => show("awaiting_user_input"));
  afterEach(() => router.go("/"));

  it.each([
    ["/", "Enter the name of a command after the slash."],
    ["/redo all", "/redo takes no arguments."],
    ["/stop now", "/stop takes no arguments."],
    ["/undo all", "/undo takes no arguments except keep or overwrite."],
  ])("%s is refused", async (text, why) => {
    run(text);
    await soon(() => expect(words(the("alert"))).toBe(why));
    expect(field().value).toBe(text);
    expect(server.sent.filter((s) => s.method === "POST")).toEqual([]);
    type(field(), "other");
    expect(all("alert")).toEqual([]);
  });

  it("/new takes its text to the home page, and leaves no draft", async () => {
    tabStorage.remove("deckhand-draft:");
    router.go("/conversations/c1");
    run("/new fix it");
    leave(); // as the router does
    await soon(() => expect(router.path).toBe("/"));
    expect(new Draft("").text).toBe("fix it");
    expect(new OpenConversation("c1").draft).toBe("");
    tabStorage.remove("deckhand-draft:");
  });

  it("/model and /search use their arguments", async () => {
    server.on("PUT /api/conversations/c1/overrides", () => ({ llm_model: "scripted/slow" }));
    run("/model scripted/slow");
    await soon(() => expect(server.to("PUT /api/conversations/c1/overrides")).toEqual([{ llm_model: "scripted/slow" }]));
    await soon(() => expect(field().value).toBe(""));
    expect(conversation.choosing).toBe(false);
    run("/search two words");
    await soon(() => expect(conversation.searching).toBe(true));
    server.on("GET /api/conversations/c1/events", () => ({ events: [], has_more: false }));
    render(SearchBar, { conversation, onshow: () => Promise.resolve(true) });
    await soon(() => expect((the("searchbox") as HTMLInputElement).value).toBe("two words"));
    toasts.all.splice(0);
  });
});

describe("the agent", () => {
  /** The buttons that change what the agent does. */
  const offered = () =>
    all("button")
      .map((b) => words(b))
      .filter(Boolean);

  it.each([
    ["running", ["Plan", "Pause", "Stop"]],
    ["paused", ["Plan", "Resume", "Stop"]],
    ["error", ["Plan", "Resume", "Stop"]],
    ["awaiting_user_confirmation", ["Plan", "Stop"]],
    ["awaiting_user_input", ["Plan"]],
    ["stopped", ["Plan", "Start"]],
  ])("that is %s can be told to %j", (state, want) => {
    show(state);
    expect(offered()).toEqual(want);
  });

  it("of a stopped conversation starts with a message or the button", async () => {
    server.on("POST /api/conversations/c1/start", () => ({}));
    conversation.info = { status: "STOPPED" } as Conversation;
    show("awaiting_user_input");
    expect(field().placeholder).toBe("Send a message to start it again");
    click(the("button", "Start"));
    await soon(() => expect(server.to("POST /api/conversations/c1/start")).toHaveLength(1));
  });

  it.each([
    ["running", false, "Pause", { agent_state: "paused" }],
    ["running", true, "Pause now", { agent_state: "paused", now: true }],
    ["paused", false, "Resume", { agent_state: "running" }],
    ["running", false, "Stop", { agent_state: "stopped" }],
  ])("that is %s (pausing: %s) obeys %s", async (state, pausing, button, args) => {
    conversation.status.pausing = pausing;
    show(state);
    click(the("button", button));
    await soon(() => expect(server.to(events)).toEqual([{ action: "change_agent_state", args }]));
  });
});
