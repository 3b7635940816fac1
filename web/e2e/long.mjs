// What the page costs: to load, to open a conversation, and to look through a very long
// one. How long things take is told; it is judged where nothing else is running.
import { begin, call, clean, enter, expect, job, play, say, settle } from "./stage.mjs";

const many = "many"; // the conversation that the Go test has made

/** judge tells a figure, and fails if it is too large on a machine that is ours alone. */
function judge(name, value, most, unit) {
  say({ figure: `${name}: ${Math.round(value)} ${unit}, at most ${most}` });
  expect(!job.judge || value <= most, `${name}: ${Math.round(value)} ${unit} is more than ${most}`);
}

/** Tasks during which the page could not answer, as the browser itself notes them. */
const watchTasks = () => {
  window.longest = 0;
  new PerformanceObserver((list) => {
    for (const e of list.getEntries()) window.longest = Math.max(window.longest, e.duration);
  }).observe({ type: "longtask", buffered: true });
};

await play({
  async "the home page is small"() {
    await settle("ada");
    const there = await enter("ada");
    const wire = await there.context.newCDPSession(there.page);
    await wire.send("Network.enable");
    let bytes = 0;
    wire.on("Network.loadingFinished", (e) => (bytes += e.encodedDataLength));
    await there.page.goto("");
    await there.page.getByRole("textbox", { name: "Task" }).waitFor();
    await there.page.evaluate(() => new Promise((done) => requestIdleCallback(done)));
    expect(bytes > 10_000 && bytes < 300_000, `it loads ${bytes} bytes`);
    say({ figure: `the home page loads ${bytes} bytes` });
    await clean(there);
  },

  async "a conversation opens as fast as the API answers"() {
    const id = await begin("ada", "$ echo quickly");
    const there = await enter("ada");
    const { page } = there;
    await page.goto("");
    const row = page.locator(`a[href$="/conversations/${id}"]`);
    const read = () => page.evaluate((id) => new Promise((done) => {
      const begun = performance.now();
      const source = new EventSource(new URL(`api/conversations/${id}/events/stream?after=0`, document.baseURI));
      source.onmessage = () => { source.close(); done(performance.now() - begun); };
    }), id);
    const shown = () => page.evaluate((id) => new Promise((done) => {
      const begun = performance.now();
      new MutationObserver((_, watch) => {
        if (!document.querySelector('[role="article"]')) return;
        watch.disconnect();
        requestAnimationFrame(() => done(performance.now() - begun));
      }).observe(document.body, { childList: true, subtree: true });
      document.querySelector(`a[href$="/conversations/${id}"]`).click();
    }), id);
    await row.waitFor();
    const rounds = [];
    for (let i = 0; i < 5; i++) {
      const api = await read();
      rounds.push((await shown()) - api);
      await page.getByRole("link", { name: "Conversations" }).click();
      await row.waitFor();
    }
    const [best] = rounds.slice(1).sort((a, b) => a - b); // the first one loads the page's code
    judge("from the click to the first event, beyond the API's own time", best, 100, "ms");
    await clean(there);
  },

  async "ten thousand events are no burden"() {
    await settle("admin");
    const there = await enter("admin");
    const { page } = there;
    await page.addInitScript(watchTasks);
    await page.goto(`conversations/${many}`);
    await page.locator("#main").getByText("echo 9998").first().waitFor();
    judge("the longest task while it opens", await page.evaluate(() => window.longest), 100, "ms");
    await page.evaluate(() => (window.longest = 0));
    const history = page.getByRole("region", { name: "What happened" });
    const seen = new Set();
    for (let i = 0; i < 30; i++) {
      await history.evaluate((e) => (e.scrollTop -= e.clientHeight));
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      for (const text of await page.locator('[role="article"]').allTextContents()) seen.add(text);
    }
    judge("the longest task while it is looked through", await page.evaluate(() => window.longest), 100, "ms");
    expect(seen.size > 50, `only ${seen.size} things were seen on the way up`);
    const inPage = await page.locator('[role="article"]').count();
    expect(inPage < 200, `${inPage} things are in the page at once`);
    const wire = await there.context.newCDPSession(page);
    await wire.send("HeapProfiler.collectGarbage");
    const { metrics } = await wire.send("Performance.enable").then(() => wire.send("Performance.getMetrics"));
    const heap = metrics.find((m) => m.name === "JSHeapUsedSize").value;
    expect(heap < 200e6, `it holds ${heap} bytes`);
    say({ figure: `with 10,000 events the page holds ${Math.round(heap / 1e6)} MB` });
    expect((await call("admin", "GET", `/api/conversations/${many}`)).last_event_id > 10_000, "there are too few events");
    await clean(there);
  },
});
