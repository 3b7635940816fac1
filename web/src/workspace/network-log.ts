// The ledger of what the sandbox asked of the network.
import type { Asked } from "./routes";

/** merged is a ledger with a page of it read again: newest first, each once, the newer reading of two. */
export function merged(have: Asked[], page: Asked[]): Asked[] {
  const all = new Map(have.map((a) => [a.id, a]));
  for (const a of page) all.set(a.id, a);
  return [...all.values()].sort((a, b) => b.id - a.id);
}

/** matching are those of a verdict ("" is any) whose host, method or reason has some words. */
export function matching(list: Asked[], words: string, verdict: string): Asked[] {
  const wanted = words.trim().toLowerCase();
  return list.filter(
    (a) => (!verdict || a.verdict === verdict) && `${a.method} ${a.host}:${a.port} ${a.reason}`.toLowerCase().includes(wanted),
  );
}

/** hosts are the lines of a list that say something. */
export function hosts(text: string): string[] {
  return text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter((line) => line !== "");
}
