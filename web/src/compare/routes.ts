// The calls of the compare view, by name.
import { api, data, type Schemas } from "../lib/api";
import type { Comparing } from "../conversation/open-conversation.svelte";

export type File = Schemas["ComparedFile"];
export type Versions = Schemas["FileComparison"];
export type Checkpoint = Schemas["Checkpoint"];

/** sides are the two sides as the server has them: what it calls other is the later one. */
const sides = (id: string, { event, other, otherEvent }: Comparing) => ({
  path: { conversation_id: other || id },
  query: { event_id: otherEvent, other: id, other_event_id: event },
});

/** files are those that differ. What git stores for itself is left out: its changes say nothing to people. */
export async function files(id: string, what: Comparing): Promise<File[]> {
  const got = await data(api.GET("/api/conversations/{conversation_id}/compare", { params: sides(id, what) }));
  return (got.files ?? []).filter((f) => !f.path.split("/").includes(".git"));
}

export function versions(id: string, what: Comparing, path: string): Promise<Versions> {
  const { path: of, query } = sides(id, what);
  return data(api.GET("/api/conversations/{conversation_id}/compare/file", { params: { path: of, query: { ...query, path } } }));
}

export async function checkpoints(id: string): Promise<Checkpoint[]> {
  const got = await data(api.GET("/api/conversations/{conversation_id}/checkpoints", { params: { path: { conversation_id: id } } }));
  return got.checkpoints ?? [];
}

export async function conversations(text: string): Promise<Schemas["Conversation"][]> {
  return (await data(api.GET("/api/conversations", { params: { query: { query: text || undefined, limit: 20 } } }))).results ?? [];
}

export const title = async (id: string) =>
  (await data(api.GET("/api/conversations/{conversation_id}", { params: { path: { conversation_id: id } } }))).title;
