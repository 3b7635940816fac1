// A page in both themes and several widths: no violation that axe calls serious. With a
// folder for pictures, it leaves some.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";

import { expect, job } from "./stage.mjs";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

// Each width and each theme once; a soak and a run for pictures use all four.
const looks =
  job.soak || job.pictures
    ? [1280, 390].flatMap((width) => ["light", "dark"].map((theme) => [width, theme]))
    : [
        [1280, "light"],
        [390, "dark"],
      ];

/** look at a page that is ready in all its looks. */
export async function look(there, name, shapes = looks) {
  const { page } = there;
  const found = [];
  await page.emulateMedia({ reducedMotion: "reduce" });
  for (const [width, colorScheme] of shapes) {
    await page.setViewportSize({ width, height: 800 });
    await page.evaluate(async (theme) => {
      document.documentElement.dataset.theme = theme;
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      // What is inherited changes after what it is inherited from: the end of one transition begins another.
      for (;;) {
        const changes = document.getAnimations().filter((a) => a instanceof CSSTransition);
        if (changes.length === 0) break;
        await Promise.all(changes.map((a) => a.finished.catch(() => {})));
        await new Promise((done) => requestAnimationFrame(done));
      }
    }, colorScheme);
    if (job.pictures) await page.screenshot({ path: join(job.pictures, `${name}-${width}-${colorScheme}.png`) });
    found.push(...(await faults(page)).map((fault) => `${name} ${width} ${colorScheme}: ${fault}`));
  }
  expect(found.length === 0, found.join("\n"));
}

/** faults are what axe calls serious, and whether one has to scroll sideways. */
export async function faults(page) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe);
  const { violations } = await page.evaluate(
    (values) => window.axe.run(document, { runOnly: { type: "tag", values }, resultTypes: ["violations"] }),
    rules,
  );
  const found = violations
    .filter((v) => ["serious", "critical"].includes(v.impact))
    .map(
      (v) =>
        `${v.id}: ${v.nodes
          .slice(0, 3)
          .map((n) => `${n.target} ${n.html.slice(0, 200)} ${n.any[0]?.message ?? ""}`)
          .join(" | ")}`,
    );
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (over > 0) found.push(`${over} px wider than the window`);
  return found;
}
