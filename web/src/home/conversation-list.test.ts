import { beforeEach, describe, expect, it, vi } from "vitest";

import type { Conversation } from "./conversation-rows";

/** The stream of the page, by hand. */
class Source {
  static now: Source;
  static readonly CLOSED = 2;
  readyState = 1;
  onopen = () => {};
  onerror = () => {};
  private heard: Record<string, (e: { data: string }) => void> = {};
  constructor(readonly url: string) {
    Source.now = this;
  }
  addEventListener(name: string, call: (e: { data: string }) => void): void {
    this.heard[name] = call;
  }
  say(name: string, data: unknown): void {
    this.heard[name]!({ data: JSON.stringify(data) });
  }
  close(): void {
    this.readyState = Source.CLOSED;
  }
}

/** Requests that wait for an answer. */
let waiting: { query: URLSearchParams; answer(rows: Conversation[], next?: string): void }[] = [];

vi.stubGlobal("document", { baseURI: "http://deckhand.test/" });
vi.stubGlobal("EventSource", Source);
vi.stubGlobal("fetch", (request: Request) => {
  return new Promise<Response>((done) => {
    const answer = (results: Conversation[], next_page_id: string | null = null) => done(Response.json({ results, next_page_id }));
    waiting.push({ query: new URL(request.url).searchParams, answer });
  });
});
const { List } = await import("./conversation-list.svelte");

function row(id: string, minute: number, more: Partial<Conversation> = {}): Conversation {
  return {
    conversation_id: id,
    title: id,
    created_at: `2026-11-15T10:0${minute}:00Z`,
    status: "RUNNING",
    last_event_id: 1,
    selected_repository: null,
    ...more,
  } as Conversation;
}

let list: InstanceType<typeof List>;
const ids = () => list.rows.map((r) => r.conversation_id).join(" ");
const soon = (check: () => void) => vi.waitFor(check, { timeout: 60_000 });

const asked = () => soon(() => expect(waiting.length).toBeGreaterThan(0)).then(() => waiting.shift()!);

beforeEach(() => {
  waiting = [];
  list = new List();
});

describe("the list", () => {
  it("keeps what changed while it was on its way", async () => {
    const end = list.follow();
    const first = await asked();
    Source.now.say("snapshot", { results: [row("b", 2, { title: "newer", last_event_id: 7 })] });
    Source.now.say("conversation", row("c", 3));
    Source.now.say("deleted", { conversation_id: "a" });
    first.answer([row("b", 2), row("a", 1)]);
    await soon(() => expect(ids()).toBe("c b"));
    expect(list.rows[1]!.title).toBe("newer");
    Source.now.say("conversation", row("d", 4));
    expect(ids()).toBe("d c b");
    end();
    expect(Source.now.readyState).toBe(Source.CLOSED);
  });

  it("asks anew after it was cut off", async () => {
    const end = list.follow();
    (await asked()).answer([row("b", 2), row("a", 1)]);
    await soon(() => expect(ids()).toBe("b a"));
    Source.now.onerror();
    expect(list.connected).toBe(false);
    Source.now.onopen();
    Source.now.say("snapshot", { results: [row("b", 2)] });
    (await asked()).answer([row("b", 2)]);
    await soon(() => expect(ids()).toBe("b"));
    expect(list.connected).toBe(true);
    end();
  });

  it("tells when an agent leaves off", async () => {
    const end = list.follow();
    const rested: string[] = [];
    list.onrest = (row) => rested.push(`${row.conversation_id} ${row.agent_state}`);
    (await asked()).answer([row("b", 2, { agent_state: "running" }), row("a", 1, { agent_state: "awaiting_user_input" })]);
    await soon(() => expect(ids()).toBe("b a"));
    Source.now.say("conversation", row("a", 1, { agent_state: "running", last_event_id: 2 }));
    Source.now.say("conversation", row("c", 3, { agent_state: "finished" }));
    expect(rested).toEqual([]);
    Source.now.say("conversation", row("b", 2, { agent_state: "awaiting_user_confirmation", last_event_id: 2 }));
    Source.now.say("conversation", row("a", 1, { agent_state: "stopped", status: "STOPPED", last_event_id: 3 }));
    expect(rested).toEqual(["b awaiting_user_confirmation"]);
    end();
  });

  it("shows the rows of the last search, whichever answer comes last", async () => {
    list.filter = { query: "one", status: "" };
    const late = list.load();
    list.find({ query: " two ", status: "STOPPED" });
    const one = await asked();
    const two = await asked();
    expect([one.query.get("query"), two.query.get("query"), two.query.get("status")]).toEqual(["one", "two", "STOPPED"]);
    two.answer([row("two", 2, { status: "STOPPED" })]);
    await soon(() => expect(ids()).toBe("two"));
    one.answer([row("one", 1)]);
    await late;
    expect(ids()).toBe("two");
  });

  it("goes on where the page before ended", async () => {
    list.find({ query: "", status: "" });
    (await asked()).answer([row("b", 2)], "after-b");
    await soon(() => expect(list.more).toBe(true));
    const shown = list.showMore();
    const next = await asked();
    expect(next.query.get("page_id")).toBe("after-b");
    next.answer([row("a", 1)]);
    await shown;
    expect(ids()).toBe("b a");
    expect(list.more).toBe(false);
  });
});
