// What the plays have in common: a browser, people who are logged in, and an eye on
// everything that must never happen.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

import { chromium } from "playwright-core";

/** Where the server is and who there is; the Go test that starts the plays says so. */
export const job = JSON.parse(process.env.DECKHAND_PLAY ?? "{}");

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** say tells the Go test something. */
export const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

/** ask has the Go test do something, and waits until it did. */
export async function ask(what) {
  say({ ask: what });
  await answers.next();
}

let browser;

export async function open() {
  browser = await chromium.launch({
    executablePath: job.chromium,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update"],
  });
}

/** trace begins a record of what the browser does for a page; traced is what it recorded. */
export const trace = (page) =>
  browser.startTracing(page, { categories: ["devtools.timeline", "disabled-by-default-devtools.timeline", "toplevel"] });
export const traced = async () => JSON.parse(await browser.stopTracing()).traceEvents;

/** memory is what the process that draws a page holds for itself, in bytes, after it has cleaned up. */
export async function memory(page) {
  const wire = await page.context().newCDPSession(page);
  await wire.send("HeapProfiler.collectGarbage");
  const { processInfo } = await (await browser.newBrowserCDPSession()).send("SystemInfo.getProcessInfo");
  const held = processInfo
    .filter((p) => p.type === "renderer")
    .map((p) => Number(/^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${p.id}/status`, "utf8"))[1]) * 1024);
  return Math.max(...held);
}

export const close = () => browser?.close();

/**
 * visit opens a browser of its own, without a login. What goes wrong in it is
 * collected; expected are forms of what may be in the console, such as the status of a
 * request that is meant to fail.
 */
export async function visit({ base = job.base, expected = [], ...options } = {}) {
  const context = await browser.newContext({ baseURL: base + "/", locale: "en-GB", viewport: { width: 1280, height: 800 }, ...options });
  context.setDefaultTimeout(300_000); // only what never comes takes so long
  const wrong = [];
  const note = (text) => expected.some((form) => form.test(text)) || wrong.push(text);
  const own = new Set([new URL(base).host]);
  context.on("console", (m) => m.type() === "error" && note(`console: ${m.text()} ${m.location().url}`));
  context.on("weberror", (e) => note(`script: ${e.error().name} ${e.error().message} ${e.error().stack}`));
  context.on("request", (r) => {
    const url = new URL(r.url());
    if (/^(https?|wss?):$/.test(url.protocol) && !own.has(url.host)) note(`foreign: ${r.url()}`);
  });
  const page = await context.newPage();
  return { context, page, wrong, end: () => context.close() };
}

/** enter is visit with a login. */
export async function enter(name, options = {}) {
  const there = await visit(options);
  const answer = await there.context.request.post("api/login", { data: { key: job.keys[name] } });
  if (!answer.ok()) throw new Error(`${name} cannot log in: ${answer.status()}`);
  return there;
}

/** call uses the API as a user, beside the page. */
export async function call(name, method, path, body) {
  const answer = await fetch(job.base + path, {
    method,
    headers: { "X-Session-API-Key": job.keys[name], "Content-Type": "application/json" },
    body: body && JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 300)}`);
  return text && JSON.parse(text);
}

/** settle stores settings with the built-in model. */
export const settle = (name, more = {}) => call(name, "POST", "/api/settings", { llm_model: "scripted/demo", ...more });

/** begin makes a conversation. */
export const begin = async (name, text) =>
  (await call(name, "POST", "/api/conversations", text ? { initial_user_msg: text } : {})).conversation_id;

/** play runs the parts and reports each: one after the other, or some at a time where none minds another. */
export async function play(parts, atATime = 1) {
  const only = process.argv[2];
  await open();
  const left = Object.entries(parts).filter(([name]) => !only || name.includes(only));
  const hand = async () => {
    for (let next = left.shift(); next; next = left.shift()) await perform(...next);
  };
  await Promise.all(Array.from({ length: atATime }, hand));
  await close();
  process.exit(); // the line to the Go test would keep us
}

async function perform(name, part) {
  const begun = performance.now();
  let failure = "";
  try {
    await part();
  } catch (err) {
    failure = err instanceof Error ? (err.stack ?? err.message) : String(err);
  }
  failure = failure.slice(0, 20_000); // a longer line is more than the Go test reads
  say({ part: name, failure, took: Math.round(performance.now() - begun) });
}

export function expect(ok, text) {
  if (!ok) throw new Error(text);
}

/** clean fails if something went wrong that was not expected, and ends the visit. */
export async function clean(there) {
  expect(there.wrong.length === 0, there.wrong.join("\n"));
  await there.end();
}
