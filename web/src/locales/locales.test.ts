// Every language has every text, and the page uses no missing text.
import { describe, expect, it } from "vitest";

type Words = Record<string, string>;

const files = import.meta.glob<Words>("./*/*.json", { eager: true, import: "default" });
const sources = import.meta.glob<string>(["../**/*.{ts,svelte}", "!../**/*.test.ts", "!../**/*.d.ts"], {
  eager: true,
  query: "?raw",
  import: "default",
});

/** Texts by language and part. */
const languages: Record<string, Record<string, Words>> = {};
for (const [path, words] of Object.entries(files)) {
  const [, language, part] = /^\.\/(.+)\/(.+)\.json$/.exec(path)!;
  (languages[language!] ??= {})[part!] = words;
}
const { en: english, ...others } = languages;
const keys = new Set(Object.values(english!).flatMap((words) => Object.keys(words)));

const placeholders = (text: string) => (text.match(/\{\w+\}/g) ?? []).sort();

describe("English", () => {
  it("has every key once", () => {
    const all = Object.values(english!).flatMap((words) => Object.keys(words));
    expect(all.filter((key, i) => all.indexOf(key) !== i)).toEqual([]);
  });

  it("has all languages that can be chosen", () => {
    const list = /languages: Record<string, string> = \{([^}]*)\}/.exec(sources["../lib/i18n.svelte.ts"]!)![1]!;
    const chosen = [...list.matchAll(/^\s*"?([\w-]+)"?:/gm)].map((m) => m[1]!);
    expect(chosen.sort()).toEqual(Object.keys(languages).sort());
  });
});

describe.each(Object.entries(others))("%s", (_, parts) => {
  it.each(Object.entries(english!))("says all of %s", (part, words) => {
    const translated = parts[part] ?? {};
    expect(Object.keys(translated).sort()).toEqual(Object.keys(words).sort());
    for (const [key, text] of Object.entries(words)) {
      expect(translated[key]!.trim(), key).not.toBe("");
      expect(placeholders(translated[key]!), key).toEqual(placeholders(text));
    }
  });

  it("has no part of its own", () => {
    expect(Object.keys(parts).filter((part) => !(part in english!))).toEqual([]);
  });
});

describe("the page", () => {
  /** Where a key is used: t("a.b"), t(cond ? "a" : "b") or count("a.b"), and t(`a.${x}`). */
  const uses = Object.entries(sources).flatMap(([path, text]) =>
    [...text.matchAll(/(?<![\w.])(?:language\.)?(t|count)\(([^()]*?["'`][^)]*)/g)].flatMap(([, call, inside]) =>
      first(inside!).map((key) => ({ path, call: call!, key })),
    ),
  );

  it("uses texts", () => expect(uses.length).toBeGreaterThan(50));

  it("asks for no text that there is not", () => {
    const missing = uses.filter(({ call, key }) => {
      const forms = call === "count" ? [`${key}.other`] : [key];
      const [start, ...rest] = key.split("${");
      return rest.length > 0 ? ![...keys].some((k) => k.startsWith(start!)) : !forms.some((f) => keys.has(f));
    });
    expect(missing).toEqual([]);
  });
});

/** first are the strings that the first argument of a call may be: one, or those that a condition chooses from. */
function first(inside: string): string[] {
  const literal = /"([^"]*)"|'([^']*)'|`([^`]*)`/;
  const alone = new RegExp(`^\\s*(?:${literal.source})`).exec(inside);
  if (alone) return [alone[1] ?? alone[2] ?? alone[3]!];
  const argument = /^(?:"[^"]*"|'[^']*'|`[^`]*`|[^,"'`])*/.exec(inside)![0];
  const chosen = argument.slice(argument.indexOf("?") + 1);
  return [...chosen.matchAll(new RegExp(literal, "g"))].map((m) => m[1] ?? m[2] ?? m[3]!);
}
