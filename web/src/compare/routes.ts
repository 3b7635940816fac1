// API requests of the compare view.
import { api, data, type Schemas } from "../lib/api";
import type { Comparing } from "../conversation/open-conversation.svelte";

export type File = Schemas["ComparedFile"];
export type Versions = Schemas["FileComparison"];
export type Checkpoint = Schemas["Checkpoint"];

/** sides returns the two sides as the API names them. Its "other" side is the later one. */
const sides = (id: string, { event, other, otherEvent }: Comparing) => ({
  path: { conversation_id: other || id },
  query: { event_id: otherEvent, other: id, other_event_id: event },
});

/** files returns the files that differ, without git's internal files. */
export async function files(id: string, what: Comparing): Promise<File[]> {
  const { path, query } = sides(id, what);
  const got = await data(api.GET("/api/conversations/{conversation_id}/compare", { params: { path, query: { ...query, renames: true } } }));
  return (got.files ?? []).filter((f) => !f.path.split("/").includes(".git"));
}

export function versions(id: string, what: Comparing, { path, from }: Pick<File, "path" | "from">): Promise<Versions> {
  const { path: of, query } = sides(id, what);
  const file = { ...query, path, from: from ?? undefined };
  return data(api.GET("/api/conversations/{conversation_id}/compare/file", { params: { path: of, query: file } }));
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
