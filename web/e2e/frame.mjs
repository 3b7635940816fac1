// What is around the conversations: the frame, beginning one, logging in, keys.
import { begin, call, clean, enter, expect, job, play, settle, visit } from "./stage.mjs";

const focused = (page) =>
  page.evaluate(() => document.activeElement?.id || document.activeElement?.getAttribute("aria-label") || document.activeElement?.tagName);

/** dropped lets files fall somewhere on the page. */
const dropped = (page, where, files) =>
  page.evaluate(
    ([where, files]) => {
      const data = new DataTransfer();
      for (const [name, type] of files) data.items.add(new File(["x"], name, { type }));
      const event = new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
      document.querySelector(where).dispatchEvent(event);
      return event.defaultPrevented;
    },
    [where, files],
  );

await play({
  async "the first task without a mouse"() {
    const there = await enter("ada");
    const { page } = there;
    await page.goto("");
    await page.getByRole("button", { name: "Try the demo model" }).press("Enter");
    await page.getByRole("textbox", { name: "Task" }).waitFor();
    expect((await focused(page)) === "Task", `the focus is at ${await focused(page)}`);
    await page.keyboard.type("$ printf 'tau%s' t");
    await page.keyboard.press("Control+Enter");
    await page.waitForURL(/\/conversations\/[\w-]+$/);
    await page.locator("#main").getByText("taut").first().waitFor();
    await clean(there);
  },

  async "the keyboard leads everywhere"() {
    await settle("bob");
    const id = await begin("bob", "$ true");
    await call("bob", "PATCH", `/api/conversations/${id}`, { title: "Scrape the hull" });
    const there = await enter("bob");
    const { page } = there;
    await page.goto("settings/agent");
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    expect(
      (await focused(page)) === "main" && page.url().endsWith("/settings/agent"),
      `skipped to ${await focused(page)} at ${page.url()}`,
    );
    await page.keyboard.press("?");
    const keys = page.getByRole("dialog", { name: "Keyboard shortcuts" });
    await keys.getByText("Save settings").waitFor();
    await keys.getByRole("switch", { name: "Single-key shortcuts" }).click();
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog", { name: "Commands" }).waitFor();
    expect((await keys.count()) === 0 || !(await keys.isVisible()), "a single key counts though it was turned off");
    await page.keyboard.type("the hull");
    await page.getByRole("option", { name: "Scrape the hull" }).waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/conversations/${id}`);
    await clean(there);
  },

  async "what is dropped beside the form goes along"() {
    await settle("cleo");
    const there = await enter("cleo");
    const { page } = there;
    await page.goto("");
    await page.getByRole("textbox", { name: "Task" }).waitFor();
    expect(await dropped(page, "h1", [["log.txt", "text/plain"]]), "the browser would open the file in place of the page");
    await page.getByRole("button", { name: "Remove log.txt" }).waitFor();
    const many = Array.from({ length: 56 }, (_, i) => [`i${i}.svg.gif`, "image/gif"]);
    await dropped(page, "body", many);
    await page.getByText(/^Not attached: i50\.svg\.gif, i51\.svg\.gif, i52\.svg\.gif and 3 more\./).waitFor();
    await clean(there);
  },

  async "a repository's address is understood, or refused with a reason"() {
    await settle("dora");
    const there = await enter("dora");
    const { page } = there;
    await page.goto("");
    await page.getByRole("button", { name: /^Repository/ }).click();
    await page.keyboard.type("http://127.0.0.1:9/ada/engine.git");
    await page.getByText("127.0.0.1:9 is not a connected git provider.").waitFor();
    await page.getByRole("combobox", { name: "Repository" }).fill("https://gitlab.com/group/ada/engine.git");
    await page.getByRole("option", { name: "group/ada/engine GitLab" }).click();
    await page.getByRole("button", { name: "Repository: group/ada/engine" }).waitFor();
    await clean(there);
  },

  async "who logs out in one tab is out in all"() {
    await settle("emil");
    const there = await enter("emil", { expected: [/status of 401/] });
    const { page, context } = there;
    await page.goto("");
    await page.getByRole("textbox", { name: "Task" }).fill("not lost");
    const other = await context.newPage();
    await other.goto("settings/account");
    await other.getByRole("button", { name: "Account menu: emil" }).click();
    await other.getByRole("menuitem", { name: "Log out" }).click();
    await page.getByRole("textbox", { name: "Key" }).waitFor();
    await other.getByRole("textbox", { name: "Key" }).fill(` ${job.keys.emil}\n`);
    await other.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("textbox", { name: "Task" }).waitFor();
    expect((await page.getByRole("textbox", { name: "Task" }).inputValue()) === "not lost", "the draft is gone");
    await clean(there);
  },

  async "an address that is not there"() {
    await settle("finn");
    const there = await enter("finn", { expected: [/status of 404/] });
    const { page } = there;
    await page.goto("no/such/page");
    await page.getByRole("heading", { name: "Page not found" }).waitFor();
    await page.getByRole("link", { name: "Go to conversations" }).click();
    await page.getByRole("textbox", { name: "Task" }).waitFor();
    const stranger = await visit({ expected: [/status of 401/] });
    await stranger.page.goto("no/such/page");
    await stranger.page.getByRole("textbox", { name: "Key" }).waitFor();
    await clean(stranger);
    await clean(there);
  },

  async "a page that is gone from the server is loaded anew, once"() {
    await settle("gwen");
    const there = await enter("gwen", { expected: [/status of 404/] });
    const { page } = there;
    let loaded = 0;
    page.on("load", () => loaded++);
    await page.route(/\/ui\/Settings-.*\.js$/, (route) => route.fulfill({ status: 404, contentType: "application/json", body: "{}" }));
    await page.goto("");
    await page.getByRole("link", { name: "Settings" }).click();
    await page.getByRole("button", { name: "Try again" }).waitFor();
    expect(loaded === 2, `the page was loaded ${loaded} times`);
    await page.unroute(/\/ui\/Settings-.*\.js$/);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("heading", { name: "Model", level: 1 }).waitFor();
    await clean(there);
  },

  async "the theme is there before the page is"() {
    await settle("gwen");
    const there = await enter("gwen", { colorScheme: "light" });
    const { page } = there;
    const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.goto("");
    await page.getByRole("button", { name: "Account menu: gwen" }).click();
    const light = await paper();
    await page.getByRole("menuitem", { name: "Switch between light and dark theme" }).click();
    const dark = await paper();
    expect(dark !== light, `it is ${dark} in both`);
    await page.route(/\/ui\/index-.*\.js$/, () => {}); // never answered
    await page.goto("", { waitUntil: "commit" });
    await page.waitForFunction((dark) => document.body && getComputedStyle(document.body).backgroundColor === dark, dark);
    expect((await page.locator("#app").innerHTML()) === "", "the page was there");
    await page.unrouteAll({ behavior: "ignoreErrors" });
    for (const path of ["manual/", "docs"]) {
      await page.goto(path);
      expect((await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme)) === "dark", `${path} is not dark`);
    }
    await clean(there);
  },

  async "a browser that keeps nothing"() {
    await settle("cleo");
    const there = await enter("cleo");
    const { page, context } = there;
    await context.addInitScript(() => {
      const forbid = () => {
        throw new DOMException("denied", "SecurityError");
      };
      for (const store of ["localStorage", "sessionStorage"]) Object.defineProperty(window, store, { get: forbid });
    });
    await page.goto("");
    await page.getByRole("textbox", { name: "Task" }).fill("$ printf 'ke%s' pt");
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.locator("#main").getByText("kept").first().waitFor();
    await page.getByRole("tab", { name: "Terminal" }).click();
    await page.getByRole("tab", { name: "Terminal", selected: true }).waitFor();
    await page.getByRole("button", { name: "Account menu: cleo" }).click();
    await page.getByRole("menuitem", { name: "Switch between light and dark theme" }).click();
    await page.waitForFunction(() => document.documentElement.dataset.theme);
    await clean(there);
    const cookieless = await visit({ expected: [/status of 401/] });
    await cookieless.page.route("**/api/me", (route) => route.fulfill({ status: 401, contentType: "application/json", body: "{}" }));
    await cookieless.page.goto("login");
    await cookieless.page.getByRole("textbox", { name: "Key" }).fill(job.keys.cleo);
    await cookieless.page.keyboard.press("Enter");
    await cookieless.page.getByText("Allow cookies for this site").waitFor();
    await clean(cookieless);
  },

  async "a clock that is wrong"() {
    await settle("dora");
    await begin("dora", "$ true");
    const there = await enter("dora");
    const { page } = there;
    await page.clock.setFixedTime(Date.now() - 3 * 3600 * 1000);
    await page.goto("");
    expect((await page.getByRole("time").first().innerText()) === "now", "what happened is still to come");
    await clean(there);
  },

  async "one's own key is revoked with a warning"() {
    await settle("hugo");
    const { key } = await call("hugo", "POST", "/api/keys", { name: "spare" });
    const there = await visit({ expected: [/status of 401/] });
    const { page } = there;
    await page.goto("settings/keys");
    await page.getByRole("textbox", { name: "Key" }).fill(key);
    await page.keyboard.press("Enter");
    await page.getByRole("listitem").filter({ hasText: "spare" }).getByText("Current login").waitFor();
    await page.getByRole("button", { name: "Revoke spare" }).click();
    const question = page.getByRole("dialog");
    await question.getByText("You are logged in with this key").waitFor();
    await question.getByRole("button", { name: "Revoke" }).click();
    await page.getByRole("textbox", { name: "Key" }).waitFor();
    await clean(there);
  },
});
