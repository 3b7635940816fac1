// Tool servers as rows of a form. The settings keep them in three lists, by how they
// are spoken to; a row knows its kind, and its place in the list of that kind.
import type { Schemas } from "../lib/api";

export type Kind = "shttp" | "sse" | "stdio";
export type Config = Schemas["MCPConfig"];

/** What stands for a value that is stored and not told. */
export const mask = "**********";

export interface Server {
  /** For the page only: rows keep their controls when others go. */
  id: number;
  kind: Kind;
  url: string;
  apiKey: string;
  timeout: string;
  name: string;
  command: string;
  /** One argument on each line. */
  args: string;
  /** NAME=value on each line. */
  env: string;
}

let next = 1;

export function blank(kind: Kind): Server {
  return { id: next++, kind, url: "", apiKey: "", timeout: "", name: "", command: "", args: "", env: "" };
}

/** rows are the servers of settings, in the order of the lists. */
export function rows(config: Config | null | undefined): Server[] {
  const remote = (kind: Kind, list: Config["sse_servers"]) =>
    (list ?? []).map((s) =>
      typeof s === "string"
        ? { ...blank(kind), url: s }
        : { ...blank(kind), url: s.url, apiKey: s.api_key ?? "", timeout: s.timeout ? String(s.timeout) : "" },
    );
  const local = (config?.stdio_servers ?? []).map((s) => ({
    ...blank("stdio"),
    name: s.name,
    command: s.command,
    args: Array.isArray(s.args) ? s.args.join("\n") : (s.args ?? ""),
    env:
      typeof s.env === "string"
        ? s.env.replaceAll(",", "\n")
        : Object.entries(s.env ?? {})
            .map(([k, v]) => `${k}=${v}`)
            .join("\n"),
  }));
  return [...remote("shttp", config?.shttp_servers), ...remote("sse", config?.sse_servers), ...local];
}

/** config is what rows are in the settings. */
export function config(list: Server[]): Config {
  const of = (kind: Kind) => list.filter((s) => s.kind === kind);
  return {
    shttp_servers: of("shttp").map((s) => ({ ...address(s), ...(s.timeout.trim() === "" ? {} : { timeout: seconds(s.timeout) }) })),
    sse_servers: of("sse").map(address),
    stdio_servers: of("stdio").map((s) => ({ name: s.name.trim(), command: s.command.trim(), args: lines(s.args), env: pairs(s.env) })),
  };
}

const address = (s: Server) => ({ url: s.url.trim(), api_key: s.apiKey === "" ? null : s.apiKey });

/** What is no number goes as it is, so that the server says what it expects. */
const seconds = (text: string) => (Number.isFinite(Number(text)) ? Number(text) : (text as unknown as number));

const lines = (text: string) =>
  text
    .split("\n")
    .map((l) => l.trim())
    .filter(Boolean);

function pairs(text: string): Record<string, string> {
  return Object.fromEntries(
    lines(text).map((line) => {
      const at = line.indexOf("=");
      return at < 0 ? [line, ""] : [line.slice(0, at).trim(), line.slice(at + 1)];
    }),
  );
}

/** path is where the server's words about a row point to. */
export function path(list: Server[], row: Server): string {
  const at = list.filter((s) => s.kind === row.kind).indexOf(row);
  return `${row.kind}_servers.${at}`;
}
