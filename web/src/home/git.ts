// Repositories and branches at the person's git providers.
import createClient from "openapi-fetch";

import { baseUrl, type Schemas, toError, unanswered } from "../lib/api";
// Generated from the descriptors of the providers, by a test in internal/gitprovider/forge.
import list from "../lib/providers.json";
import type { paths } from "../lib/schema";

export type Repository = Pick<Schemas["GitRepository"], "full_name" | "main_branch"> & { git_provider: string | null };

// A client of its own: here 401 may mean that a provider does not take the stored
// token any more, and that must not log the user out.
const git = createClient<paths>({ baseUrl });
git.use({
  async onResponse({ response }) {
    if (response.ok) return;
    const text = await response.clone().text();
    let body: unknown = text;
    try {
      body = JSON.parse(text);
    } catch {
      // the words are the body
    }
    throw toError(response, body);
  },
  onError: ({ error }) => unanswered(error),
});

/** How providers write their names. */
export const providers: Record<string, string> = Object.fromEntries(list.map((p) => [p.name, p.title]));

/** The providers whose webhooks can start the agent. */
export const triggers: string[] = list.filter((p) => p.triggers).map((p) => p.name);

type ProviderName = NonNullable<NonNullable<paths["/api/user/search/branches"]["get"]["parameters"]["query"]>["selected_provider"]>;

const shown = 30;

/** repositories are those with a text in their name; without one, those last worked on. */
export async function repositories(text: string): Promise<Repository[]> {
  const answer = text
    ? await git.GET("/api/user/search/repositories", { params: { query: { query: text, per_page: shown } } })
    : await git.GET("/api/user/repositories", { params: { query: { per_page: shown } } });
  return answer.data ?? [];
}

export async function branches(repository: Repository, text: string): Promise<string[]> {
  const of = {
    repository: repository.full_name,
    per_page: shown,
    selected_provider: (repository.git_provider as ProviderName | null) ?? undefined,
  };
  if (text) {
    const found = await git.GET("/api/user/search/branches", { params: { query: { ...of, query: text } } });
    return (found.data ?? []).map((b) => b.name);
  }
  const { data } = await git.GET("/api/user/repository/branches", { params: { query: of } });
  const list = Array.isArray(data) ? data : (data?.branches ?? []);
  return list.map((b) => b.name);
}

// The providers of well-known hosts.
const known: Record<string, string> = Object.fromEntries(list.filter((p) => p.host).map((p) => [p.host, p.name]));

const address = /^(?:(?:https?|git|ssh):\/\/(?:[^@/]*@)?([^/]+)\/|[\w.-]+@([^/:]+):)(.*)$/i;

/** A repository named by a text, or the unknown host in its address. */
export type Named = { repository: Repository } | { stranger: string } | undefined;

/**
 * named is the repository that a text names: owner/name, or its address at a provider.
 * connected are the hosts of the person's own providers; none is the provider's usual one.
 */
export function named(text: string, connected: Record<string, string | null>): Named {
  const [, web, shell, rest] = address.exec(text.trim()) ?? [];
  const host = (web ?? shell ?? "").toLowerCase();
  const full_name = (rest ?? text.trim()).replace(/(?:\.git)?\/*$/, "");
  if (!/^[\w.-]+(?:\/[\w.-]+)+$/.test(full_name)) return undefined;
  if (!host) return { repository: { full_name, git_provider: null, main_branch: null } };
  const own = Object.entries(connected).find(([, at]) => at && bare(at) === host)?.[0];
  const git_provider = own ?? known[host.replace(/^(?:www|ssh)\./, "").replace(/:\d+$/, "")];
  return git_provider ? { repository: { full_name, git_provider, main_branch: null } } : { stranger: host };
}

/** bare is a host as it stands in addresses. */
const bare = (host: string) =>
  host
    .toLowerCase()
    .replace(/^https?:\/\//, "")
    .replace(/\/.*$/, "");
