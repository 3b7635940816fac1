// What an agent that means no good can do to the person who looks: nothing.
import { begin, call, clean, enter, expect, job, play, settle, visit } from "./stage.mjs";

const shown = (page, text) => page.locator("#main").getByText(text).first().waitFor();
const pwned = (page) => page.evaluate(() => [window.pwned, top.pwned].some(Boolean));

async function boarded(name, options) {
  await call(name, "POST", "/api/settings", {
    llm_model: "openai/pirate",
    llm_api_key: "sk-pirate",
    llm_base_url: job.model,
    confirmation_mode: false,
  });
  const there = await enter(name, options);
  const id = await begin(name, "Ahoy");
  await there.page.goto(`conversations/${id}`);
  await there.page.locator("#main .markdown").getByText("the end of the loot").last().waitFor();
  return { ...there, id };
}

await play({
  async "what it says and does runs nothing, loads nothing and stops nothing"() {
    const there = await boarded("quinn");
    const { page, id } = there;
    await call("quinn", "PATCH", `/api/conversations/${id}`, { title: '<img src=x onerror="top.pwned=1">{title}' });
    await page.locator("h1").getByText("<img src=x").waitFor();
    const links = await page.locator("#main .markdown a").evaluateAll((all) => all.map((a) => a.getAttribute("href") ?? ""));
    expect(
      links.every((href) => /^(https?:|mailto:|#|$)/.test(href)),
      `links lead to ${links}`,
    );
    expect(
      (await page.locator("#main .markdown :is(script, style, iframe, form, svg, [style], [id], [class*=fixed])").count()) === 0,
      "the page took over what it was given",
    );
    await page.goto(`conversations/${id}/files`);
    for (const name of ["evil.svg", "evil.md", "like.txt", "broken.txt", "<img src=x onerror=pwned=1>.txt"]) {
      await page.getByRole("treeitem", { name, exact: true }).click();
      if (/svg|md/.test(name)) await page.getByRole("button", { name: "Preview" }).click();
      if (name === "evil.svg") await page.getByRole("img", { name }).waitFor();
      if (name === "evil.md") await page.getByRole("region", { name }).waitFor();
      if (/like|broken/.test(name)) await page.locator(".cm-content").getByText("data:").waitFor();
    }
    await page.goto(".");
    await page.getByRole("link", { name: /<img src=x/ }).waitFor();
    expect(!(await pwned(page)), "a script ran");
    await clean(there);
  },

  async "what it serves has no hold of the page that shows it"() {
    const there = await boarded("rosa", {
      expected: [/^foreign: http:\/\/p8124-/, /localhost:\d+/, /evil\.test/, /127\.0\.0\.1:\d+/, /Unsafe attempt/, /sandbox/i],
    });
    const { page, id } = there;
    await page.goto(`conversations/${id}/ports`);
    await page.getByRole("button", { name: "Preview" }).first().click();
    const out = page.frameLocator("iframe").locator("#out");
    await out.getByText("all=done").waitFor();
    const told = await out.textContent();
    for (const want of ["parent=no", "cookie=no", "top=no", "referrer=none", "me=no"]) expect(told.includes(want), `it found out: ${told}`);
    expect(!told.includes("rosa") && page.url().startsWith(job.base), `it got to ${page.url()}: ${told}`);
    expect((await call("rosa", "GET", "/api/settings")).language !== "de", "it changed the settings");
    await clean(there);
  },

  async "a login leads to no other site"() {
    for (const path of ["nope%3f/%2e%2e", "a%2f%2fb", "settings/%5c"]) {
      const there = await visit({ expected: [/401|404/] });
      const { page } = there;
      await page.goto(path);
      const key = page.getByRole("textbox", { name: "Key" });
      if (
        await key.waitFor({ timeout: 3000 }).then(
          () => true,
          () => false,
        )
      ) {
        await key.fill(job.keys.quinn);
        await key.press("Enter");
        await key.waitFor({ state: "detached" });
      }
      expect(page.url().startsWith(job.base), `${path} leads to ${page.url()}`);
      await clean(there);
    }
  },

  async "an hour of going to and fro leaves nothing behind"() {
    await settle("quinn");
    const there = await enter("quinn");
    const { page, context } = there;
    const ids = [await begin("quinn", "$ seq 1 200; printf 'rea%s' dy"), await begin("quinn", "$ seq 1 100; printf 'rea%s' dy")];
    const open = new Set();
    context.on("request", (r) => r.resourceType() === "eventsource" && open.add(r));
    for (const over of ["requestfinished", "requestfailed"]) context.on(over, (r) => open.delete(r));
    await page.goto(".");
    const wire = await context.newCDPSession(page);
    await wire.send("Performance.enable");
    const go = (path) =>
      page.evaluate((to) => {
        const a = document.createElement("a");
        a.href = to;
        document.body.append(a);
        a.click();
        a.remove();
      }, path);
    const round = async (times) => {
      for (let i = 0; i < times; i++) {
        await go(`${job.base}/conversations/${ids[i % 2]}/${i % 4 < 2 ? "files" : "terminal"}`);
        await shown(page, "ready");
        await go(`${job.base}/`);
        await page.getByRole("button", { name: "Start", exact: true }).waitFor();
      }
      await wire.send("HeapProfiler.collectGarbage");
      const { metrics } = await wire.send("Performance.getMetrics");
      return Object.fromEntries(metrics.map((m) => [m.name, m.value]));
    };
    const first = await round(10);
    const last = await round(40);
    const figures = ["JSEventListeners", "Nodes", "Documents", "JSHeapUsedSize"].map((n) => `${n} ${first[n]} -> ${last[n]}`).join(", ");
    expect(
      last.JSEventListeners < first.JSEventListeners * 1.5 + 50 &&
        last.Nodes < first.Nodes * 1.5 + 500 &&
        last.JSHeapUsedSize < first.JSHeapUsedSize * 1.5 + 5e6,
      figures,
    );
    expect(open.size <= 1, `${open.size} streams are still read`);
    await clean(there);
  },
});
