import { describe, expect, it } from "vitest";

import { t } from "../lib/i18n.svelte";
import { type Conversation, fits, grouped, headings, order, stateOf, withPage, withPlace, withRow, without } from "./conversation-rows";

const all = { query: "", status: "" } as const;

function row(id: string, minute: number, more: Partial<Conversation> = {}): Conversation {
  const at = `2026-11-15T10:${String(minute).padStart(2, "0")}:00Z`;
  return {
    conversation_id: id,
    title: `Task ${id}`,
    created_at: at,
    last_updated_at: at,
    status: "RUNNING",
    agent_state: "running",
    last_event_id: 1,
    selected_repository: null,
    error_id: null,
    ...more,
  } as Conversation;
}

const ids = (rows: Conversation[]) => rows.map((r) => r.conversation_id).join(" ");

describe("rows", () => {
  const rows = [row("c", 3), row("b", 2), row("a", 1)];

  it("are newest first, and by id where they are as old", () => {
    expect(ids([row("a", 1), row("c", 3), row("d", 3)].sort(order))).toBe("d c a");
  });

  it("show where they stand in the queue, and that they wait no more", () => {
    const place = { position: 3, reason: "user_limit", running: 4, limit: 4, message: "" } as const;
    const waits = withPlace(rows, "b", place);
    expect(waits.map(stateOf)).toEqual(["running", "queued", "running"]);
    expect(waits[1]!.queue?.position).toBe(3);
    expect(withPlace(waits, "b", null).map(stateOf)).toEqual(["running", "running", "running"]);
    expect(stateOf({ ...waits[1]!, status: "STOPPED" })).toBe("stopped");
  });

  it("take a new one in at its place", () => {
    expect(ids(withRow(rows, row("d", 4), all, false))).toBe("d c b a");
    expect(ids(withRow(rows, row("bb", 2), all, false))).toBe("c bb b a");
  });

  it("leave out what belongs to a page that was not shown yet", () => {
    expect(ids(withRow(rows, row("z", 0), all, false))).toBe("c b a");
    expect(ids(withRow(rows, row("z", 0), all, true))).toBe("c b a z");
    expect(ids(withRow([], row("z", 0), all, false))).toBe("z");
  });

  it("change, but not back", () => {
    const changed = withRow(rows, row("b", 2, { title: "Renamed", last_event_id: 5 }), all, false);
    expect(changed[1]?.title).toBe("Renamed");
    expect(withRow(changed, row("b", 2, { last_event_id: 4 }), all, false)[1]?.title).toBe("Renamed");
  });

  it("go when they do not fit any more", () => {
    expect(ids(withRow(rows, row("b", 2, { status: "STOPPED" }), { query: "", status: "RUNNING" }, false))).toBe("c a");
    expect(ids(without(rows, "c"))).toBe("b a");
  });

  it("are not doubled by a page that overlaps", () => {
    expect(ids(withPage(rows, [row("a", 1), row("z", 0)]))).toBe("c b a z");
  });
});

describe("fits", () => {
  const one = row("7f3a", 1, { title: "Fix the Compass", selected_repository: "ada/engine" });
  it.each([
    ["", "", true],
    ["compass", "", true],
    ["ADA/", "", true],
    [" 7F3 ", "", true],
    ["tide", "", false],
    ["compass", "STOPPED", false],
    ["", "RUNNING", true],
  ] as const)("%j, %j: %j", (query, status, expected) => expect(fits(one, { query, status })).toBe(expected));
});

describe("stateOf", () => {
  it.each([
    ["STARTING", "awaiting_user_input", null, "loading"],
    ["RUNNING", "awaiting_user_confirmation", null, "awaiting_user_confirmation"],
    ["STOPPED", "running", null, "stopped"],
    ["STOPPED", "error", "STATUS$ERROR", "error"],
  ] as const)("%s, %s", (status, agent_state, error_id, expected) =>
    expect(stateOf(row("a", 1, { status, agent_state, error_id }))).toBe(expected),
  );
});

describe("grouped", () => {
  const at = (id: string, minute: number, more: Partial<Conversation>) =>
    row(id, 1, { last_updated_at: `2026-01-02T15:0${minute}:00Z`, status: "RUNNING", ...more } as never);
  const rows = [
    at("idle", 1, { agent_state: "awaiting_user_input" }),
    at("done", 4, { agent_state: "finished" }),
    at("asks", 2, { agent_state: "awaiting_user_input", reason: "question" }),
    at("risky", 3, { agent_state: "awaiting_user_confirmation" }),
    at("works", 5, { agent_state: "running" }),
    at("limited", 6, { agent_state: "rate_limited" }),
    at("refused", 7, { agent_state: "rejected" }),
    at("broken", 2, { status: "STOPPED", agent_state: "error", error_id: "STATUS$ERROR" }),
    at("rests", 2, { agent_state: "paused" }),
    at("closed", 2, { status: "STOPPED", agent_state: "awaiting_user_input" }),
  ];

  it("puts what waits for the person first, and the newest first in each group", () => {
    expect(grouped(rows).map(({ group, rows }) => [t(`state.${headings[group]}`), ids(rows)])).toEqual([
      ["Needs approval", "risky"],
      ["Question", "asks"],
      ["Failed", "refused broken"],
      ["Working", "limited works"],
      ["Done", "done idle"],
      ["Paused", "rests"],
      ["Stopped", "closed"],
    ]);
  });
});
