// The calls of this page, by name.
import { api, data, once, retryKey, type Schemas } from "../lib/api";
import type { Event } from "../lib/events";

export type Conversation = Schemas["Conversation"];
export type Approval = Schemas["Approval"];
export type Decision = Schemas["Decision"];

export type Waiting = Schemas["QueuedMessage"];
export type Overrides = Schemas["Overrides"];
export type Trust = Schemas["Trust"];
export type Timeline = Schemas["Timeline"];
export type SpanKind = Schemas["TimelineSpan"]["kind"];

const path = (id: string) => ({ path: { conversation_id: id } });
const keyed = (id: string) => ({ ...path(id), header: { "Idempotency-Key": retryKey() } });

export const conversation = (id: string) => data(api.GET("/api/conversations/{conversation_id}", { params: path(id) }));

/** page is up to 100 events before one, newest first, without those that show nothing. */
export async function page(id: string, before?: number): Promise<{ events: Event[]; more: boolean }> {
  const query = {
    reverse: true,
    limit: 100,
    format: "deckhand" as const,
    exclude_types: "recall_asked,replayed",
    ...(before === undefined ? {} : { end_id: before - 1 }),
  };
  const got = await data(api.GET("/api/conversations/{conversation_id}/events", { params: { ...path(id), query } }));
  return { events: (got.events ?? []) as Event[], more: got.has_more };
}

/** search finds events with a text in them, newest first. */
export async function search(id: string, text: string): Promise<number[]> {
  const query = { query: text, reverse: true, limit: 100, format: "deckhand" as const, include_types: searched };
  const got = await data(api.GET("/api/conversations/{conversation_id}/events", { params: { ...path(id), query } }));
  return ((got.events ?? []) as Event[]).map((e) => e.id);
}
const searched = "user_said,model_answered,tool_called,tool_returned,command_typed,command_ended,condensed,noted,turn_ended";

/** prompt is the system prompt, "" if the agent has none yet. */
export async function prompt(id: string): Promise<string> {
  const query = { limit: 1, format: "deckhand" as const, include_types: "briefed" };
  const got = await data(api.GET("/api/conversations/{conversation_id}/events", { params: { ...path(id), query } }));
  const [first] = (got.events ?? []) as Event[];
  return first?.kind === "briefed" ? first.payload.prompt : "";
}

export function say(id: string, content: string, images: string[], files: string[]): Promise<unknown> {
  const args = { content, image_urls: images.length ? images : null, file_urls: files.length ? files : null };
  const send = (key: string) =>
    data(
      api.POST("/api/conversations/{conversation_id}/events", {
        params: { ...path(id), header: { "Idempotency-Key": key } },
        body: { action: "message", args },
      }),
    );
  return once(`say ${id} ${JSON.stringify(args)}`, send);
}

/** compact replaces the history that the model sees with a summary. */
export const compact = (id: string, instructions: string) =>
  data(api.POST("/api/conversations/{conversation_id}/compact", { params: keyed(id), body: instructions ? { instructions } : {} }));

/** become asks for another state: running, paused, stopped. */
export const become = (id: string, state: string) =>
  data(
    api.POST("/api/conversations/{conversation_id}/events", {
      params: keyed(id),
      body: { action: "change_agent_state", args: { agent_state: state } },
    }),
  );

/** interrupt pauses without waiting for the step in progress. */
export const interrupt = (id: string) =>
  data(
    api.POST("/api/conversations/{conversation_id}/events", {
      params: keyed(id),
      body: { action: "change_agent_state", args: { agent_state: "paused", now: true } },
    }),
  );

export const start = (id: string) => data(api.POST("/api/conversations/{conversation_id}/start", { params: keyed(id), body: {} }));

export const approvals = (id: string) => data(api.GET("/api/conversations/{conversation_id}/approvals", { params: path(id) }));

export const decide = (id: string, body: Decision) =>
  data(api.POST("/api/conversations/{conversation_id}/approvals", { params: keyed(id), body }));

export const rename = (id: string, title: string) =>
  data(api.PATCH("/api/conversations/{conversation_id}", { params: path(id), body: { title } }));

export const remove = (id: string) => data(api.DELETE("/api/conversations/{conversation_id}", { params: path(id) }));

export const trajectory = (id: string) => data(api.GET("/api/conversations/{conversation_id}/trajectory", { params: path(id) }));

/** upload stores files in the workspace and gives their paths. */
export async function upload(id: string, files: File[]): Promise<Schemas["Uploaded"]> {
  const body = new FormData();
  for (const file of files) body.append("files", file, file.name);
  return data(
    api.POST("/api/conversations/{conversation_id}/upload-files", {
      params: keyed(id),
      body: body as never,
      bodySerializer: (b) => b as never,
    }),
  );
}

export const queue = (id: string) => data(api.GET("/api/conversations/{conversation_id}/queue", { params: path(id) }));

export const overrides = (id: string) => data(api.GET("/api/conversations/{conversation_id}/overrides", { params: path(id) }));

export const override = (id: string, body: Schemas["SetOverrides"]) =>
  data(api.PUT("/api/conversations/{conversation_id}/overrides", { params: path(id), body }));

export const trust = (id: string) => data(api.GET("/api/conversations/{conversation_id}/trust", { params: path(id) }));

export const setTrust = (id: string, trusted: boolean) =>
  data(api.PUT("/api/conversations/{conversation_id}/trust", { params: path(id), body: { trusted } }));

/** timeline is a page of turns behind one, and their spans. */
export const timeline = (id: string, after: number) =>
  data(api.GET("/api/conversations/{conversation_id}/timeline", { params: { ...path(id), query: { after } } }));

/** The parts to restore. */
export interface Restoring {
  files: boolean;
  conversation: boolean;
}

/** What to do with files that the user changed too. */
export type Own = "refuse" | "keep" | "overwrite";
export type RestoreConflict = Schemas["RestoreConflict"];

/** restore undoes the agent's changes to files after an event, hides the later conversation, or both. */
export const restore = (id: string, event_id: number, what: Restoring, own_changes: Own) =>
  data(api.POST("/api/conversations/{conversation_id}/restore", { params: keyed(id), body: { event_id, ...what, own_changes } }));

export const checkpoints = (id: string) => data(api.GET("/api/conversations/{conversation_id}/checkpoints", { params: path(id) }));

export const undoRestore = (id: string, own_changes: Own) =>
  data(api.POST("/api/conversations/{conversation_id}/restore/undo", { params: keyed(id), body: { own_changes } }));
export const redoRestore = (id: string, own_changes: Own) =>
  data(api.POST("/api/conversations/{conversation_id}/restore/redo", { params: keyed(id), body: { own_changes } }));

/** fork copies the conversation up to an event, null is all of it, with the files of then or of now. */
export const fork = (id: string, event: number | null, then = false) =>
  data(
    api.POST("/api/conversations/{conversation_id}/fork", {
      params: keyed(id),
      body: { event_id: event, title: null, ...(then ? { files: "event" as const } : {}) },
    }),
  );
