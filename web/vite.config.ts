import { svelte } from "@sveltejs/vite-plugin-svelte";
import tailwindcss from "@tailwindcss/vite";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

// Tests render components with the half of Svelte that runs in a browser.
const inTests: Plugin = {
  name: "browser-in-tests",
  config: (_, { mode }) => (mode === "test" ? { resolve: { conditions: ["browser"] } } : undefined),
};

export default defineConfig({
  plugins: [svelte(), tailwindcss(), inTests],
  // Addresses are relative to the page's <base>, which the server sets, so that the
  // same files work at the root and behind a proxy under a path.
  base: "./",
  build: {
    assetsDir: "ui",
    // dist holds a file of the repository, so make empties it, not vite.
    emptyOutDir: false,
    target: "es2022",
    modulePreload: { polyfill: false },
    // Inlined files would need a policy that lets a page load data: as fonts and scripts.
    assetsInlineLimit: 0,
  },
  server: {
    proxy: { "/api": "http://127.0.0.1:3000", "/server_info": "http://127.0.0.1:3000" },
  },
  // The limit only ends a hang: on a busy machine a test may take long.
  test: { include: ["src/**/*.test.ts"], setupFiles: ["src/testing/setup.ts"], testTimeout: 120_000 },
});
