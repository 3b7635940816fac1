// The list of conversations, as pure steps: what a page of it, or a change of one row,
// makes of the rows that are shown.
import type { Schemas } from "../lib/api";
import type { QueuePlace } from "../lib/follow";

export type Conversation = Schemas["Conversation"];
export type StatusFilter = "" | Conversation["status"];

export interface Filter {
  query: string;
  status: StatusFilter;
}

/** order is the server's: newest first, and what was made at the same moment by id. */
export function order(a: Conversation, b: Conversation): number {
  const apart = Date.parse(b.created_at) - Date.parse(a.created_at);
  return apart || (a.conversation_id < b.conversation_id ? 1 : a.conversation_id > b.conversation_id ? -1 : 0);
}

/** fits says what the server says: whether a row is one of those asked for. */
export function fits(row: Conversation, { query, status }: Filter): boolean {
  if (status && row.status !== status) return false;
  const wanted = query.trim().toLowerCase();
  return [row.title, row.selected_repository ?? "", row.conversation_id].some((text) => text.toLowerCase().includes(wanted));
}

/** later is the one of two answers about the same row that was true last. */
function later(a: Conversation | undefined, b: Conversation): Conversation {
  return a && a.last_event_id > b.last_event_id ? a : b;
}

/**
 * withRow is the list after a row was made or changed. A row below the last one shown
 * comes with the page it is on, unless the list is whole.
 */
export function withRow(rows: Conversation[], row: Conversation, filter: Filter, whole: boolean): Conversation[] {
  const known = rows.find((r) => r.conversation_id === row.conversation_id);
  const others = rows.filter((r) => r !== known);
  if (!fits(row, filter)) return others;
  const last = rows.at(-1);
  if (!known && !whole && last && order(row, last) > 0) return rows;
  return [...others, later(known, row)].sort(order);
}

/** withPlace is the list after a row moved in the queue for a free slot. */
export function withPlace(rows: Conversation[], id: string, queue: QueuePlace): Conversation[] {
  return rows.map((r) => (r.conversation_id === id ? { ...r, queue: queue ?? undefined } : r));
}

/** withPage is the list with another page below. */
export function withPage(rows: Conversation[], page: Conversation[]): Conversation[] {
  const known = new Set(rows.map((r) => r.conversation_id));
  return [...rows, ...page.filter((r) => !known.has(r.conversation_id))].sort(order);
}

export function without(rows: Conversation[], id: string): Conversation[] {
  return rows.filter((r) => r.conversation_id !== id);
}

/** stateOf is the one word for what is going on: of the agent while the conversation is open. */
export function stateOf(row: Conversation): string {
  if (row.queue && row.status !== "STOPPED") return "queued";
  if (row.status === "STARTING") return "loading";
  if (row.status === "STOPPED") return row.error_id ? "error" : "stopped";
  return row.agent_state === "awaiting_user_input" && row.reason === "question" ? "question" : row.agent_state;
}

/** The groups of the sidebar, in order: what waits for the person comes first. */
export const groups = ["approval", "question", "failed", "working", "done", "paused", "stopped"] as const;
export type Group = (typeof groups)[number];

const groupOf: Record<string, Group> = {
  awaiting_user_confirmation: "approval",
  question: "question",
  error: "failed",
  rejected: "failed",
  awaiting_user_input: "done",
  finished: "done",
  ready: "done",
  paused: "paused",
  stopped: "stopped",
};

/** headings are the states used as group headings. A row with a state that differs from its heading shows the state itself. */
export const headings: Record<Group, string> = {
  approval: "awaiting_user_confirmation",
  question: "question",
  failed: "error",
  working: "running",
  done: "awaiting_user_input",
  paused: "paused",
  stopped: "stopped",
};

/** grouped puts rows into groups by their state, each with what changed last first. */
export function grouped(rows: Conversation[]): { group: Group; rows: Conversation[] }[] {
  const by = new Map<Group, Conversation[]>(groups.map((g) => [g, []]));
  for (const row of rows.toSorted((a, b) => Date.parse(b.last_updated_at) - Date.parse(a.last_updated_at)))
    by.get(groupOf[stateOf(row)] ?? "working")!.push(row);
  return [...by].map(([group, rows]) => ({ group, rows })).filter((g) => g.rows.length > 0);
}

const working = new Set(["queued", "loading", "running", "user_confirmed", "user_rejected"]);

/** rested reports whether the agent stopped working between two states of a row, so that the user may want to look. */
export function rested(before: Conversation | undefined, row: Conversation): boolean {
  return before !== undefined && working.has(stateOf(before)) && !working.has(stateOf(row)) && stateOf(row) !== "stopped";
}
