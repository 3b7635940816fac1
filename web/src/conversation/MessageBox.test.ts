// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { tabStorage } from "../lib/storage";
import { all, click, descriptionOf, leave, press, render, server, soon, the, type, words } from "../testing/page";
import MessageBox from "./MessageBox.svelte";
import QueuedMessages from "./QueuedMessages.svelte";
import type { Conversation } from "./routes";
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
    type(field(), " Fix the build ");
    press("Enter", field());
    await soon(() => expect(told).toBe(1));
    expect(server.to(events)).toEqual([message("Fix the build")]);
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
    render(QueuedMessages, { list: [{ event_id: 8, content: "also this", image_urls: null, said_at: "2026-01-02T15:04:05Z" }] });
    const queue = the("group") as HTMLDetailsElement;
    expect(words(queue)).toContain("1 queued message");
    expect(all("listitem")).toEqual([]);
    queue.open = true;
    expect(all("listitem").map((m) => words(m))).toEqual(["also this"]);
  });
});

describe("the agent", () => {
  /** The buttons that change what the agent does. */
  const offered = () =>
    all("button")
      .map((b) => words(b))
      .filter(Boolean);

  it.each([
    ["running", ["Pause", "Stop"]],
    ["paused", ["Resume", "Stop"]],
    ["error", ["Resume", "Stop"]],
    ["awaiting_user_confirmation", ["Stop"]],
    ["awaiting_user_input", []],
    ["stopped", ["Start"]],
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
