import js from "@eslint/js";
import svelte from "eslint-plugin-svelte";
import { defineConfig } from "eslint/config";
import globals from "globals";
import ts from "typescript-eslint";

import svelteConfig from "./svelte.config.js";

// Rules that need types are left out: they are slow, and svelte-check checks the types.
export default defineConfig(
  // Built by make.
  { ignores: ["dist", "src/lib/schema.d.ts"] },
  js.configs.recommended,
  ts.configs.recommended,
  svelte.configs.recommended,
  // Prettier decides the layout.
  svelte.configs.prettier,
  {
    rules: {
      // Prettier breaks no strings, class lists or comments, so the limit is checked here. No line is
      // exempt. Files that eslint does not read may have longer lines: texts in src/locales, src/mark.svg.
      "max-len": ["error", { code: 140, tabWidth: 2 }],
      // Leaving a field out of an object is written as { [name]: _, ...rest }.
      "@typescript-eslint/no-unused-vars": ["error", { ignoreRestSiblings: true }],
    },
  },
  {
    files: ["src/**", "public/**"],
    languageOptions: { globals: globals.browser },
  },
  {
    files: ["public/sw.js"],
    languageOptions: { globals: globals.serviceworker },
  },
  {
    files: ["*.js", "*.mjs", "*.ts"],
    languageOptions: { globals: globals.node },
  },
  {
    // Plays run in Node.js; the functions that they pass to page.evaluate run in the browser.
    files: ["e2e/**"],
    languageOptions: { globals: { ...globals.node, ...globals.browser } },
  },
  {
    files: ["**/*.svelte", "**/*.svelte.ts"],
    languageOptions: { parserOptions: { parser: ts.parser, extraFileExtensions: [".svelte"], svelteConfig } },
    rules: {
      // svelte-check reports undefined names, and unlike eslint it knows the types among them.
      "no-undef": "off",
      // Svelte trims a plain line break, so one that must stay is written as {"\n"}.
      "svelte/no-useless-mustaches": ["error", { ignoreStringEscape: true }],
      // Maps and sets here are indexes and caches. What the page shows is in $state, and
      // reactive maps would make every lookup while events are folded a dependency.
      "svelte/prefer-svelte-reactivity": "off",
    },
  },
  {
    // These files find control characters in output and commands.
    files: ["src/conversation/{ansi,unseen-characters}{,.test}.ts"],
    rules: { "no-control-regex": "off" },
  },
);
