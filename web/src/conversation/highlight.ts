// Colours for code. The highlighter and each language are loaded when they are first needed.
import type { HLJSApi, LanguageFn } from "highlight.js";

const languages: Record<string, () => Promise<{ default: LanguageFn }>> = {
  bash: () => import("highlight.js/lib/languages/bash"),
  c: () => import("highlight.js/lib/languages/c"),
  cpp: () => import("highlight.js/lib/languages/cpp"),
  csharp: () => import("highlight.js/lib/languages/csharp"),
  css: () => import("highlight.js/lib/languages/css"),
  diff: () => import("highlight.js/lib/languages/diff"),
  dockerfile: () => import("highlight.js/lib/languages/dockerfile"),
  go: () => import("highlight.js/lib/languages/go"),
  ini: () => import("highlight.js/lib/languages/ini"),
  java: () => import("highlight.js/lib/languages/java"),
  javascript: () => import("highlight.js/lib/languages/javascript"),
  json: () => import("highlight.js/lib/languages/json"),
  kotlin: () => import("highlight.js/lib/languages/kotlin"),
  makefile: () => import("highlight.js/lib/languages/makefile"),
  markdown: () => import("highlight.js/lib/languages/markdown"),
  php: () => import("highlight.js/lib/languages/php"),
  python: () => import("highlight.js/lib/languages/python"),
  ruby: () => import("highlight.js/lib/languages/ruby"),
  rust: () => import("highlight.js/lib/languages/rust"),
  sql: () => import("highlight.js/lib/languages/sql"),
  swift: () => import("highlight.js/lib/languages/swift"),
  typescript: () => import("highlight.js/lib/languages/typescript"),
  xml: () => import("highlight.js/lib/languages/xml"),
  yaml: () => import("highlight.js/lib/languages/yaml"),
};

const others: Record<string, string> = {
  sh: "bash",
  shell: "bash",
  zsh: "bash",
  console: "bash",
  h: "c",
  hpp: "cpp",
  cc: "cpp",
  "c++": "cpp",
  cs: "csharp",
  "c#": "csharp",
  docker: "dockerfile",
  golang: "go",
  toml: "ini",
  conf: "ini",
  js: "javascript",
  jsx: "javascript",
  mjs: "javascript",
  cjs: "javascript",
  kt: "kotlin",
  mk: "makefile",
  md: "markdown",
  py: "python",
  rb: "ruby",
  rs: "rust",
  ts: "typescript",
  tsx: "typescript",
  html: "xml",
  svg: "xml",
  svelte: "xml",
  vue: "xml",
  yml: "yaml",
  patch: "diff",
};

/** known is the highlighter's name of a language, or of a file's by its path. */
export function known(name: string): string | undefined {
  const last = name.toLowerCase().split(/[/.]/).at(-1) ?? "";
  const found = others[last] ?? last;
  return found in languages ? found : undefined;
}

let core: Promise<HLJSApi> | undefined;
const ready = new Set<string>();

/** Long texts would block the page; they are read without colours. */
const longest = 20_000;

/** highlight gives code as HTML of the highlighter, or undefined if there is nothing to colour. */
export async function highlight(code: string, name: string): Promise<string | undefined> {
  const language = known(name);
  if (!language || code.length > longest) return undefined;
  core ??= import("highlight.js/lib/core").then((m) => m.default);
  const hljs = await core;
  if (!ready.has(language)) {
    hljs.registerLanguage(language, (await languages[language]!()).default);
    ready.add(language);
  }
  return hljs.highlight(code, { language, ignoreIllegals: true }).value;
}
