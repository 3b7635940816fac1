// What a person changed in the settings and did not store yet. Only that is sent, so
// that what was changed elsewhere in the meantime stays as it is.
import type { Schemas } from "../lib/api";

type Input = Schemas["SettingsInput"];
/** The fields there are; the document also lets other names in, to report them. */
export type Name = keyof { [K in keyof Input as string extends K ? never : number extends K ? never : K]: true };
export type Changes = { [K in Name]?: Input[K] };

/** The settings of a user who never stored any. */
export const defaults: Changes = {
  approval_mode: "risky",
  enable_default_condenser: true,
  enable_proactive_conversation_starters: true,
  enable_solvability_analysis: true,
  enable_sound_notifications: false,
};

/** firstSettings are what a new user stores with the first setting: the agent asks before risky calls. */
export const firstSettings = (stored: unknown): Changes => (stored ? {} : { approval_mode: defaults.approval_mode });

/** same is whether two values mean the same: an empty text is no value. */
export function same(a: unknown, b: unknown): boolean {
  const plain = (v: unknown) => JSON.stringify(v === undefined || v === "" ? null : v);
  return plain(a) === plain(b);
}

/** changed are the changes with one more; a value as it is stored is none. */
export function changed(changes: Changes, stored: unknown, name: Name, value: unknown): Changes {
  const { [name]: _, ...rest } = changes;
  if (same(stored, value)) return rest;
  return { ...rest, [name]: value };
}

/** keyed are the changes with a key: undefined keeps the stored one, an empty text removes it. */
export function keyed(changes: Changes, name: Name, value: string | undefined): Changes {
  const { [name]: _, ...rest } = changes;
  return value === undefined ? rest : { ...rest, [name]: value };
}

/**
 * number is what is meant by the text of a number field: null is the default. What is
 * no number is sent as it is, and the server says what it expects there.
 */
export function number(text: string): number | string | null {
  const plain = text.trim().replace(/^(-?\d*),(\d+)$/, "$1.$2");
  if (plain === "") return null;
  const n = Number(plain);
  return Number.isFinite(n) ? n : plain;
}
