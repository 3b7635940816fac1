// The calls of the message box, by name.
import { api, data, once, type Schemas } from "../lib/api";

export type Command = Schemas["Command"];
export type Mention = Schemas["Mention"];
export type Task = Schemas["SuggestedTask"];

const path = (id: string) => ({ path: { conversation_id: id } });

export async function commands(id: string): Promise<Command[]> {
  return (await data(api.GET("/api/conversations/{conversation_id}/commands", { params: path(id) }))).commands ?? [];
}

export function run(id: string, name: string, args: string, images: string[], files: string[]): Promise<unknown> {
  const body = { name, arguments: args, image_urls: images.length ? images : null, file_urls: files.length ? files : null };
  return once(`run ${id} ${JSON.stringify(body)}`, (key) =>
    data(api.POST("/api/conversations/{conversation_id}/commands", { params: { ...path(id), header: { "Idempotency-Key": key } }, body })),
  );
}

export async function mentions(id: string, query: string): Promise<Mention[]> {
  const got = await data(api.GET("/api/conversations/{conversation_id}/mentions", { params: { ...path(id), query: { query } } }));
  return got.mentions ?? [];
}

export async function conversations(query: string): Promise<Schemas["Conversation"][]> {
  return (await data(api.GET("/api/conversations", { params: { query: { query: query || undefined, limit: 6 } } }))).results ?? [];
}

export async function tasks(): Promise<Task[]> {
  return (await data(api.GET("/api/starters"))).tasks ?? [];
}

export const changeQueued = (id: string, event_id: number, body: Schemas["ChangeQueuedMessage"]) =>
  data(api.PATCH("/api/conversations/{conversation_id}/queue/{event_id}", { params: { path: { conversation_id: id, event_id } }, body }));

export const deleteQueued = (id: string, event_id: number) =>
  data(api.DELETE("/api/conversations/{conversation_id}/queue/{event_id}", { params: { path: { conversation_id: id, event_id } } }));
