// Repositories and branches at the person's git providers.
import createClient from "openapi-fetch";

import { baseUrl, type Schemas, toError } from "../lib/api";
import type { paths } from "../lib/schema";

export type Repository = Pick<Schemas["GitRepository"], "full_name" | "main_branch"> & { git_provider: string | null };

// A client of its own: here 401 may mean that a provider does not take the stored
// token any more, and that must not log anybody out.
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
});

/** How providers write their names. */
export const providers: Record<string, string> = {
  github: "GitHub",
  gitlab: "GitLab",
  bitbucket: "Bitbucket",
  gitea: "Gitea",
  forgejo: "Forgejo",
  enterprise_sso: "SSO",
};

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
  const of = { repository: repository.full_name, per_page: shown, selected_provider: (repository.git_provider as ProviderName | null) ?? undefined };
  if (text) {
    const found = await git.GET("/api/user/search/branches", { params: { query: { ...of, query: text } } });
    return (found.data ?? []).map((b) => b.name);
  }
  const { data } = await git.GET("/api/user/repository/branches", { params: { query: of } });
  const list = Array.isArray(data) ? data : (data?.branches ?? []);
  return list.map((b) => b.name);
}

/** named is the repository that a text names by itself: owner/name, or its address. */
export function named(text: string): Repository | undefined {
  const path = text.trim().replace(/^(?:https?:\/\/|ssh:\/\/git@|git@)[^/:]+[/:]/, "").replace(/(?:\.git)?\/*$/, "");
  return /^[\w.-]+(?:\/[\w.-]+)+$/.test(path) ? { full_name: path, git_provider: null, main_branch: null } : undefined;
}
