// What the page costs: to load, to open a conversation, and to look through a very long
// one. How long things take is told; it is judged where nothing else is running.
import { begin, call, clean, enter, expect, job, memory, play, say, settle, trace, traced } from "./stage.mjs";

const many = "many"; // the conversation that the Go test has made

/** judge tells a figure, and fails if it is too large on a machine that is ours alone. */
function judge(name, value, most, unit) {
  say({ figure: `${name}: ${Math.round(value)} ${unit}, at most ${most}` });
  expect(!job.judge || value <= most, `${name}: ${Math.round(value)} ${unit} is more than ${most}`);
}

/** longest is how long the page was deaf at most while something happened, by the browser's own trace. */
async function longest(page, what) {
  await trace(page);
  await what();
  const events = await traced();
  const main = events.filter((e) => e.name === "thread_name" && e.args.name === "CrRendererMain").map((e) => `${e.pid} ${e.tid}`);
  const tasks = events.filter((e) => e.name === "RunTask" && e.ph === "X" && main.includes(`${e.pid} ${e.tid}`));
  expect(tasks.length > 0, "the trace has no task");
  const top = tasks.reduce((a, b) => (b.dur > a.dur ? b : a));
  // On a busy machine, a task may take long because it waits for a CPU.
  say({ figure: `the longest task took ${Math.round((top.tdur ?? top.dur) / 1000)} ms of processor time` });
  return top.dur / 1000;
}

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
    expect(bytes > 10_000 && bytes < 160_000, `it loads ${bytes} bytes`);
    say({ figure: `the home page loads ${bytes} bytes` });
    await clean(there);
  },

  async "a conversation opens as fast as the API answers"() {
    const id = await begin("ada", "$ echo quickly");
    const there = await enter("ada");
    const { page } = there;
    await page.goto("");
    const row = page.locator(`a[href$="/conversations/${id}"]`);
    const read = () =>
      page.evaluate(
        (id) =>
          new Promise((done) => {
            const begun = performance.now();
            const source = new EventSource(new URL(`api/conversations/${id}/events/stream?format=deckhand&after=0`, document.baseURI));
            source.onmessage = () => {
              source.close();
              done(performance.now() - begun);
            };
          }),
        id,
      );
    const shown = () =>
      page.evaluate(
        (id) =>
          new Promise((done) => {
            const begun = performance.now();
            new MutationObserver((_, watch) => {
              if (!document.querySelector('[role="article"]')) return;
              watch.disconnect();
              requestAnimationFrame(() => done(performance.now() - begun));
            }).observe(document.body, { childList: true, subtree: true });
            document.querySelector(`a[href$="/conversations/${id}"]`).click();
          }),
        id,
      );
    await row.waitFor();
    const rounds = [];
    for (let i = 0; i < 5; i++) {
      const api = await read();
      rounds.push((await shown()) - api);
      await page.getByRole("link", { name: "Conversations" }).click();
      await row.waitFor();
    }
    const median = rounds.toSorted((a, b) => a - b)[2];
    judge("from the click to the first event, beyond the API's own time", median, 100, "ms");
    say({ figure: `and the first time, ${Math.round(rounds[0])} ms` });
    await clean(there);
  },

  async "ten thousand events are no burden"() {
    await settle("admin");
    const there = await enter("admin");
    const { page } = there;
    await page.goto("about:blank");
    judge(
      "the longest task while it opens",
      await longest(page, async () => {
        await page.goto(`conversations/${many}`);
        await page.locator("#main").getByText("echo 9998").first().waitFor();
        await page.evaluate(() => new Promise((done) => requestIdleCallback(done)));
      }),
      50,
      "ms",
    );
    const history = page.getByRole("region", { name: "Conversation history" });
    const seen = new Set();
    judge(
      "the longest task while it is looked through",
      await longest(page, async () => {
        for (let i = 0; i < 30; i++) {
          await history.evaluate((e) => (e.scrollTop -= e.clientHeight));
          await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
          for (const text of await page.locator(`[role="article"]`).evaluateAll((all) => all.map((e) => e.textContent))) seen.add(text);
        }
      }),
      50,
      "ms",
    );
    expect(seen.size > 50, `only ${seen.size} things were seen on the way up`);
    const inPage = await page.locator('[role="article"]').count();
    expect(inPage < 200, `${inPage} things are in the page at once`);
    const held = await memory(page);
    say({ figure: `with 10,000 events the page's process holds ${Math.round(held / 1e6)} MB` });
    expect(held < 200e6, `it holds ${held} bytes`);
    expect((await call("admin", "GET", `/api/conversations/${many}`)).last_event_id > 10_000, "there are too few events");
    await clean(there);
  },
});
