// The models that there are, as the server finds and ranks them.
import { api, data, type Schemas } from "../lib/api";
import { language, t } from "../lib/i18n.svelte";
import type { Choice } from "../ui/search.svelte";

export type ModelInfo = Schemas["ModelInfo"];
export type ModelQuery = { q?: string; provider?: string; live?: boolean; favourites?: boolean; limit?: number };

export type ModelList = Omit<Schemas["ModelList"], "models"> & { models: ModelInfo[] };

export async function search(query: ModelQuery): Promise<ModelList> {
  const list = await data(api.GET("/api/models", { params: { query } }));
  return { ...list, models: list.models ?? [] };
}

/** tokens is a number of tokens as people say it: 200k, 1M. */
export function tokens(n: number): string {
  return n >= 1_000_000 ? `${language.number(n / 1_000_000, { maximumFractionDigits: 1 })}M` : `${language.number(Math.round(n / 1000))}k`;
}

/** isFree reports whether a model has a price, which is 0. */
export const isFree = (m: ModelInfo) => m.input_price === 0 && m.output_price === 0;

const free = new Map<string, Promise<boolean>>();

/** freeModel reports whether a model is free. A model whose price is unknown has no cost either. */
export function freeModel(id: string): Promise<boolean> {
  let found = free.get(id);
  if (!found) {
    found = search({ q: id, limit: 20 }).then((l) => l.models.some((m) => m.id === id && isFree(m)));
    free.set(id, found);
    found.catch(() => free.delete(id));
  }
  return found;
}

/** price is what a million tokens cost, in and out; "" if that is unknown. */
export function price(m: ModelInfo): string {
  if (m.input_price === null || m.output_price === null) return "";
  if (isFree(m)) return t("models.free");
  return `${language.money(m.input_price)} / ${language.money(m.output_price)}`;
}

/** note is what to know of a model in a list, in a few words. */
export function note(m: ModelInfo): string {
  if (!m.usable) return t("models.no-key");
  return [price(m), m.context_window ? tokens(m.context_window) : ""].filter(Boolean).join(" · ");
}

/** choices are models for a field; those of the person's own servers too. */
export async function choices(text: string): Promise<Choice[]> {
  const found = await search({ q: text, live: true, limit: 50 });
  return found.models.map((m) => ({ value: m.id, name: m.favourite ? `★ ${m.id}` : m.id, note: note(m) }));
}

/** isName is whether a text can be a model's name, and not just words to find one. */
export const isName = (text: string) => /^[^\s/]+\/\S+$/.test(text);
