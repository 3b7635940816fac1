// The words of the page. English is always there; another language is loaded when it
// is chosen. Each part of the page has a file of its own below locales/LANGUAGE.

import { now } from "./now";

type Words = Record<string, string>;

const english = merge(import.meta.glob<Words>("../locales/en/*.json", { eager: true, import: "default" }));
const others = import.meta.glob<Words>(["../locales/*/*.json", "!../locales/en/*.json"], { import: "default" });

/** The languages there are, by the name that settings know, with their own names. */
export const languages: Record<string, string> = {
  en: "English",
  de: "Deutsch",
  es: "Español",
  fr: "Français",
  ja: "日本語",
  pt: "Português",
  "zh-CN": "简体中文",
};

function merge(files: Record<string, Words>): Words {
  return Object.assign({}, ...Object.values(files));
}

/** closest is the supported language for a code such as de-AT or zh. */
function closest(code: string): string {
  const [first = "en"] = code.split("-");
  return [code, first].find((c) => c in languages) ?? Object.keys(languages).find((c) => c.startsWith(first + "-")) ?? "en";
}

// Making a formatter takes longer than using it a hundred times.
const formatters = new Map<string, Intl.NumberFormat>();

function formatter(code: string, options?: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = code + JSON.stringify(options ?? {});
  let found = formatters.get(key);
  if (!found) formatters.set(key, (found = new Intl.NumberFormat(code, options)));
  return found;
}

class Language {
  code = $state("en");
  private words: Words = $state.raw(english);

  /** use changes to a language; one that is not there is English. */
  async use(code: string): Promise<void> {
    const known = closest(code);
    const files = Object.entries(others).filter(([path]) => path.split("/").at(-2) === known);
    const parts = known === "en" ? [] : await Promise.all(files.map(([, load]) => load()));
    this.words = Object.assign({}, english, ...parts);
    this.code = known;
    document.documentElement.lang = known;
  }

  /** t is a text by its key, with {name} filled in. A missing text shows its key, so that it is noticed. */
  t(key: string, fill: Record<string, string | number> = {}): string {
    const words = this.words[key] ?? key;
    return words.replace(/\{(\w+)\}/g, (whole, name) => String(fill[name] ?? whole));
  }

  /** count is a text by number: key.one or key.other, as the language has it. */
  count(key: string, n: number, fill: Record<string, string | number> = {}): string {
    const form = `${key}.${new Intl.PluralRules(this.code).select(n)}`;
    return this.t(form in this.words ? form : `${key}.other`, { n: this.number(n), ...fill });
  }

  number(n: number, options?: Intl.NumberFormatOptions): string {
    return formatter(this.code, options).format(n);
  }

  money(dollars: number): string {
    return this.number(dollars, { style: "currency", currency: "USD", maximumFractionDigits: dollars < 1 ? 4 : 2 });
  }

  /** ago formats the time since a past event. Because clocks differ, the result is never in the future. */
  ago(when: string | Date, at = now()): string {
    return this.relative(Math.min(0, new Date(when).getTime() - at));
  }

  /** until formats the time until a future event. */
  until(when: string | Date, at = now()): string {
    return this.relative(Math.max(0, new Date(when).getTime() - at));
  }

  /** relative formats a time relative to now, in the largest unit that fits. */
  private relative(ms: number): string {
    const seconds = ms / 1000;
    const format = new Intl.RelativeTimeFormat(this.code, { numeric: "auto" });
    const units: [Intl.RelativeTimeFormatUnit, number][] = [
      ["day", 86_400],
      ["hour", 3600],
      ["minute", 60],
    ];
    for (const [unit, size] of units) {
      // What is to come is rounded: a key for 90 days has 90 days, though a moment has passed.
      const n = seconds > 0 ? Math.round(seconds / size) : Math.trunc(seconds / size);
      if (n !== 0) return format.format(n, unit);
    }
    return format.format(0, "second");
  }

  /** duration is a span of time, short. */
  duration(ms: number): string {
    if (ms < 1000) return `${Math.round(ms)} ms`;
    if (ms < 60_000) return `${this.number(ms / 1000, { maximumFractionDigits: 1 })} s`;
    return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
  }
}

export const language = new Language();
export const t = (key: string, fill?: Record<string, string | number>) => language.t(key, fill);
