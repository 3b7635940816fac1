// The calls of the workspace, by name.
import { ApiError, api, baseUrl, data, retryKey, type Schemas } from "../lib/api";
import type { Event } from "../lib/events";

export type Conversation = Schemas["Conversation"];
export type Review = Schemas["GitReview"];
export type Change = Schemas["GitFile"];
export type Repository = Schemas["ReviewRepository"];
export type Versions = Schemas["GitComparison"];
export type Hunk = Schemas["GitHunk"];
export type PullRequest = Schemas["ReviewedPullRequest"];
export type FileContent = Schemas["FileContent"];
export type Egress = Schemas["Egress"];
export type Asked = Schemas["EgressRequest"];
export type Mode = Schemas["EgressPolicy"]["mode"];
export type WebHosts = Schemas["WebHosts"];

const path = (id: string) => ({ path: { conversation_id: id } });
const keyed = (id: string) => ({ ...path(id), header: { "Idempotency-Key": retryKey() } });

export const conversation = (id: string) => data(api.GET("/api/conversations/{conversation_id}", { params: path(id) }));

export const start = (id: string) => data(api.POST("/api/conversations/{conversation_id}/start", { params: keyed(id), body: {} }));

// A sandbox is made when it is needed. To look into one that is not there is an error in
// the browser's console, so it is found out first, by a request that succeeds either way.
const made = new Set<string>();

async function there(id: string): Promise<void> {
  if (made.has(id)) return;
  const { runtime_id } = await data(api.GET("/api/conversations/{conversation_id}/config", { params: path(id) }));
  if (runtime_id === null) throw new ApiError(404, "", "WORKSPACE$NOT_READY", [], "");
  made.add(id);
}

/** Range is what the workspace is compared with; branch is for the range of that name. */
export type RangeName = "start" | "turn" | "head" | "staged" | "unstaged" | "upstream" | "branch";
export interface Range {
  range: RangeName;
  branch?: string;
}

/** changes are the files that differ, and what there is not, if that is why there are none. */
export async function changes(id: string, range: Range): Promise<{ review: Review; absent: string }> {
  const got = await api.GET("/api/conversations/{conversation_id}/git/review", {
    params: { ...path(id), query: { ...range, absent: "empty" } },
  });
  return { review: await data(Promise.resolve(got)), absent: got.response.headers.get("X-Absent") ?? "" };
}

/** fit is an answer about a file that can be shown; why another cannot is an error here, if not in the browser's console. */
async function fit<T extends { unfit?: Schemas["Unfit"] }>(answer: Promise<T>): Promise<T> {
  const got = await answer;
  if (got.unfit) throw new ApiError(got.unfit.status, got.unfit.message, "", [], "");
  return got;
}

export const versions = (id: string, range: Range, change: Change) =>
  fit(
    data(
      api.GET("/api/conversations/{conversation_id}/git/compare", {
        params: { ...path(id), query: { ...range, path: change.path, ...(change.from ? { from: change.from } : {}), unfit: "told" } },
      }),
    ),
  );

/** revert makes files what the range compares them with, or one part of a file. */
export const revert = (id: string, range: Range, files: Pick<Change, "path" | "from" | "etag">[], hunk?: Hunk) =>
  data(
    api.POST("/api/conversations/{conversation_id}/git/revert", {
      params: keyed(id),
      body: {
        ...range,
        files: files.map(({ path, from, etag }) => ({ path, etag, ...(from ? { from } : {}) })),
        ...(hunk ? { hunk } : {}),
      } as Schemas["GitRevert"],
    }),
  );

export const stage = (id: string, paths: string[], staged: boolean) =>
  data(api.POST("/api/conversations/{conversation_id}/git/stage", { params: keyed(id), body: { paths, staged } }));

export const draftMessage = (id: string, repository: string, stagedOnly: boolean) =>
  data(
    api.POST("/api/conversations/{conversation_id}/git/commit-message", {
      params: keyed(id),
      body: { repository, staged_only: stagedOnly },
    }),
  );

export const commit = (id: string, body: Schemas["GitCommit"]) =>
  data(api.POST("/api/conversations/{conversation_id}/git/commit", { params: keyed(id), body }));

export const push = (id: string, repository: string, branch: string) =>
  data(api.POST("/api/conversations/{conversation_id}/git/push", { params: keyed(id), body: { repository, branch } }));

export const openPullRequest = (id: string, body: Schemas["OpenPullRequest"]) =>
  data(api.POST("/api/conversations/{conversation_id}/git/pull-request", { params: keyed(id), body }));

export const pullRequests = async (id: string) =>
  (await data(api.GET("/api/conversations/{conversation_id}/git/pull-requests", { params: path(id) }))) ?? [];

/** list is what is in a folder; "" is the workspace itself. */
export async function list(id: string, folder: string): Promise<string[]> {
  await there(id);
  const query = folder ? { path: folder } : {};
  return (await data(api.GET("/api/conversations/{conversation_id}/list-files", { params: { ...path(id), query } }))) ?? [];
}

export const read = (id: string, file: string) =>
  fit(data(api.GET("/api/conversations/{conversation_id}/select-file", { params: { ...path(id), query: { file, unfit: "told" } } })));

/** save replaces a file if it still is what etag says; null makes one that is not there yet. */
export const save = (id: string, file: string, content: string, etag: string | null) =>
  data(api.PUT("/api/conversations/{conversation_id}/file", { params: path(id), body: { path: file, content, etag } }));

export function upload(id: string, files: File[]): Promise<Schemas["Uploaded"]> {
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

export const fileAddress = (id: string, file: string) =>
  `${baseUrl}/api/conversations/${encodeURIComponent(id)}/file?path=${encodeURIComponent(file)}`;

export const zipAddress = (id: string) => `${baseUrl}/api/conversations/${encodeURIComponent(id)}/zip-directory`;

export async function ports(id: string): Promise<number[]> {
  return ((await data(api.GET("/api/conversations/{conversation_id}/ports", { params: path(id) }))) ?? []).map((p) => p.port);
}

export const hosts = (id: string) => data(api.GET("/api/conversations/{conversation_id}/web-hosts", { params: path(id) }));

export const egress = (id: string, before?: number) =>
  data(
    api.GET("/api/conversations/{conversation_id}/egress", {
      params: { ...path(id), query: { limit: 100, ...(before === undefined ? {} : { before }) } },
    }),
  );

export const allow = (id: string, mode: Mode, hosts: string[]) =>
  data(api.PUT("/api/conversations/{conversation_id}/egress", { params: path(id), body: { mode, allow: hosts } }));

/** visitedPages loads up to 10 results that show a page, newest first, before an event. */
export async function visitedPages(id: string, before?: number): Promise<{ events: Event[]; more: boolean }> {
  const query = {
    reverse: true,
    limit: 10,
    format: "deckhand" as const,
    include_types: "tool_returned",
    display: "page",
    ...(before === undefined ? {} : { end_id: before - 1 }),
  };
  const got = await data(api.GET("/api/conversations/{conversation_id}/events", { params: { ...path(id), query } }));
  return { events: (got.events ?? []) as Event[], more: got.has_more };
}

/** socket is the address of a WebSocket of the conversation. */
export function socket(id: string, what: string, query: Record<string, string | number>): string {
  const address = new URL(`${baseUrl}/api/conversations/${encodeURIComponent(id)}/${what}`);
  address.protocol = address.protocol.replace("http", "ws");
  for (const [name, value] of Object.entries(query)) address.searchParams.set(name, String(value));
  return address.href;
}
