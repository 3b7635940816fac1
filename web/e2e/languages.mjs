// Checks the main screens in every language, on a phone and on a desktop: no text is cut off or untranslated, nothing is
// wider than the window, and no message key is shown.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { begin, clean, enter, expect, job, play, settle } from "./stage.mjs";

const folder = new URL("../src/locales/", import.meta.url);
const codes = readdirSync(folder, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name);

const texts = (code) =>
  Object.assign(
    {},
    ...readdirSync(new URL(`${code}/`, folder)).map((part) => JSON.parse(readFileSync(new URL(`${code}/${part}`, folder)))),
  );
const english = texts("en");

/** untranslated returns the English texts that have a different translation, and so must not appear in that language. */
function untranslated(code) {
  const own = texts(code);
  const said = new Set(Object.values(own));
  return Object.entries(english)
    .filter(([key, text]) => own[key] !== text && !said.has(text) && !text.includes("{"))
    .map(([, text]) => text);
}

/** complaints returns the problems with the texts on a page. */
function complaints(page, english, keys) {
  return page.evaluate(
    ([english, keys]) => {
      const found = [];
      const seen = (e) => e.checkVisibility({ visibilityProperty: true, opacityProperty: true });
      const over = document.documentElement.scrollWidth - innerWidth;
      if (over > 0) found.push(`${over} px wider than the window`);
      for (const nav of document.querySelectorAll("header nav"))
        if (nav.scrollWidth > nav.clientWidth + 1) found.push(`cut off: ${nav.textContent.trim()}`);
      const pen = document.createElement("canvas").getContext("2d");
      for (const e of document.querySelectorAll("input[placeholder]")) {
        const style = getComputedStyle(e);
        pen.font = style.font;
        const room = e.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
        if (seen(e) && style.textOverflow !== "ellipsis" && pen.measureText(e.placeholder).width > room + 1)
          found.push(`cut off: ${e.placeholder}`);
      }
      const foreign = new Set(english);
      const names = new Set(keys);
      const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      for (let node = walk.nextNode(); node; node = walk.nextNode()) {
        const text = node.data.trim();
        const parent = node.parentElement;
        // Texts written by users, agents and programs are not translated.
        if (!text || !seen(parent) || parent.closest("[role=feed], code, pre, script, style, .cm-editor, .xterm")) continue;
        if (names.has(text)) found.push(`the name of a text: ${text}`);
        if (foreign.has(text)) found.push(`in English: ${text}`);
      }
      for (const e of document.querySelectorAll("[aria-label], [placeholder], [title]")) {
        if (!seen(e)) continue;
        for (const name of ["aria-label", "placeholder", "title"]) {
          const text = e.getAttribute(name);
          if (names.has(text) || foreign.has(text)) found.push(`${name}: ${text}`);
        }
      }
      // Elements with an ellipsis or a scroll bar may have longer content. In all others, it is cut off.
      for (const e of document.querySelectorAll("button, a, h1, h2, h3, label, legend, summary, p, li, th, td, span")) {
        // Elements that are 1 px wide are for screen readers.
        if (!seen(e) || e.closest("[role=feed], .cm-editor, .xterm, .sr-only, svg") || e.clientWidth <= 1) continue;
        const style = getComputedStyle(e);
        const cut = style.overflowX !== "visible" && style.textOverflow !== "ellipsis" && !/auto|scroll/.test(style.overflowX);
        if (cut && e.scrollWidth > e.clientWidth + 1) found.push(`cut off: ${e.textContent.trim().slice(0, 60)}`);
        const box = e.getBoundingClientRect();
        const scrolls = (p) => p && (/auto|scroll|hidden|clip/.test(getComputedStyle(p).overflowX) || scrolls(p.parentElement));
        if (box.width > 0 && box.right > innerWidth + 1 && !scrolls(e.parentElement))
          found.push(`beyond the window: ${e.textContent.trim().slice(0, 60)}`);
      }
      return [...new Set(found)];
    },
    [english, keys],
  );
}

const screens = {
  home: "",
  model: "settings/model",
  agent: "settings/agent",
  tools: "settings/tools",
  git: "settings/git",
  notifications: "settings/notifications",
  keys: "settings/keys",
  account: "settings/account",
};

const plays = {};
for (const code of codes) {
  plays[code] = async () => {
    const user = code.toLowerCase();
    await settle(user, { language: code });
    const id = await begin(user, "$ git init -q . && echo one > one.txt && git add . && ls");
    const there = await enter(user);
    const { page } = there;
    const foreign = code === "en" ? [] : untranslated(code);
    const found = [];
    const tabs = ["changes", "files", "terminal", "browser", "ports", "network"];
    const all = { ...screens, ...Object.fromEntries(tabs.map((tab) => [tab, `conversations/${id}/${tab}`])) };
    for (const [name, path] of Object.entries(all)) {
      await page.setViewportSize({ width: 1280, height: 900 });
      await page.goto(path);
      await page.locator("h1").first().waitFor();
      await page.waitForFunction((code) => document.documentElement.lang === code, code);
      await page.locator(".late").first().waitFor({ state: "detached" });
      await page.waitForLoadState("networkidle", { timeout: 2000 }).catch(() => {}); // streams are never idle
      for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: 900 });
        await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
        await page.locator(".late").first().waitFor({ state: "detached" });
        if (job.pictures) await page.screenshot({ path: join(job.pictures, `${code}-${name}-${width}.png`) });
        found.push(...(await complaints(page, foreign, Object.keys(english))).map((fault) => `${name} ${width}: ${fault}`));
      }
    }
    expect(found.length === 0, found.join("\n"));
    await clean(there);
  };
}

await play(plays, 2);
