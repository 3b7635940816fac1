// The ten ways through Deckhand that people go most.
import { createServer, connect } from "node:net";

import { ask, begin, call, clean, enter, expect, job, play, settle, visit } from "./stage.mjs";

const write = (page) => page.getByRole("textbox", { name: "Message the agent" });

async function tell(page, text) {
  await write(page).fill(text);
  await write(page).press("Enter");
}

/** What a browser says of a connection that is not there. */
const broken = [/net::ERR_|WebSocket connection to .* failed|status of 503/, /Unable to preload CSS/];

/** state waits until the conversation's head shows it. */
const state = (page, name) => page.locator("main header").getByText(name, { exact: true }).first().waitFor();

/** shown waits for a text in what happened. */
const shown = (page, text) => page.locator("#main").getByText(text).first().waitFor();

await play({
  async "first start to a finished task"() {
    const there = await visit();
    const { page } = there;
    await page.goto(job.link);
    await page.getByRole("button", { name: "Try the demo model" }).click();
    expect(new URL(page.url()).hash === "", "the ticket is still in the address");
    await page.getByRole("textbox", { name: "Task" }).fill("$ printf 'sail%s' or-42 > made.txt; cat made.txt");
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.waitForURL(/\/conversations\/[\w-]+$/);
    await page.getByRole("button", { name: /^Approve/ }).click(); // a new user's agent asks before it writes by a command
    await shown(page, "sailor-42");
    await state(page, "Done");
    await page.getByRole("link", { name: "Conversations" }).click();
    await page.getByRole("list").or(page.getByRole("table")).getByText("Done", { exact: true }).first().waitFor();
    const key = await page.evaluate(() => document.cookie + Object.values(localStorage) + Object.values(sessionStorage));
    expect(!key.includes("dh_"), "a key is where scripts can read it");
    await clean(there);
  },

  async "an approval is given"() {
    await settle("ada", { confirmation_mode: true });
    const there = await enter("ada");
    const { page } = there;
    await page.goto(`conversations/${await begin("ada", "$ printf 'app%s' roved")}`);
    await state(page, "Needs approval");
    await page.getByRole("button", { name: /^Approve/ }).click();
    await shown(page, "approved");
    await state(page, "Done");
    expect((await page.getByRole("button", { name: /^Approve/ }).count()) === 0, "it still asks");
    await clean(there);
  },

  async "an approval is refused with a reason"() {
    await settle("bob", { confirmation_mode: true });
    const there = await enter("bob");
    const { page } = there;
    const id = await begin("bob", "$ touch never-made");
    await page.goto(`conversations/${id}`);
    await page.getByRole("button", { name: "Reject with a reason…" }).click();
    await page.getByRole("textbox", { name: "Reason" }).fill("Not on my watch");
    await page.getByRole("button", { name: "Reject", exact: true }).click();
    await shown(page, "Not on my watch");
    await state(page, "Done");
    await settle("bob", { confirmation_mode: false });
    await tell(page, "$ ls; printf 'loo%s' ked");
    await shown(page, "looked");
    const files = await call("bob", "GET", `/api/conversations/${id}/list-files`);
    expect(!JSON.stringify(files).includes("never-made"), "it was done all the same");
    await clean(there);
  },

  async "stop and start again"() {
    await settle("cleo");
    const there = await enter("cleo");
    const { page } = there;
    await page.goto(`conversations/${await begin("cleo", "$ echo begun; sleep 600")}`);
    await shown(page, "begun");
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await state(page, "Stopped");
    await page.getByRole("button", { name: "Start", exact: true }).first().click();
    await page.getByRole("button", { name: "Start", exact: true }).first().waitFor({ state: "detached" });
    await tell(page, "$ printf 'once %s' more");
    await shown(page, "once more");
    await state(page, "Done");
    await clean(there);
  },

  async "the server is restarted while one watches"() {
    await settle("dora");
    const there = await enter("dora", { expected: broken });
    const { page } = there;
    await page.goto(`conversations/${await begin("dora", "$ printf 'bef%s' ore")}`);
    await shown(page, "before");
    await ask("stop");
    await page.getByText("Connection lost.").first().waitFor();
    await ask("start");
    await page.getByText("Connection lost.").first().waitFor({ state: "detached" });
    const start = page.getByRole("button", { name: "Start", exact: true }).first();
    if (await start.isVisible()) await start.click();
    await tell(page, "$ printf 'aft%s' er");
    await shown(page, "after");
    const times = await page.locator("#main").getByText("before", { exact: true }).count();
    expect(times === 1, `it is shown ${times} times: ${await page.locator("#main").innerText()}`);
    await clean(there);
  },

  async "a connection that breaks loses nothing"() {
    await settle("emil");
    const wire = await cable(job.base);
    const there = await enter("emil", { base: wire.base, expected: broken });
    const { page } = there;
    const id = await begin("emil", "$ printf 'fi%s' rst");
    await page.goto(`conversations/${id}`);
    await shown(page, "first");
    await wire.cut();
    await page.getByText("Connection lost.").first().waitFor();
    await call("emil", "POST", `/api/conversations/${id}/message`, { message: "$ printf 'sec%s' ond" });
    await wire.mend();
    await shown(page, "second");
    await state(page, "Done");
    expect((await page.locator("#main").getByText("first", { exact: true }).count()) === 1, "something is shown twice");
    await clean(there);
    await wire.cut();
  },

  async "files are given along"() {
    await settle("finn");
    const there = await enter("finn");
    const { page } = there;
    await page.goto("");
    await page.getByRole("textbox", { name: "Task" }).fill("$ cat chart.txt");
    await page
      .locator('input[type="file"]')
      .first()
      .setInputFiles({ name: "chart.txt", mimeType: "text/plain", buffer: Buffer.from("here be dragons\n") });
    await page.getByText("chart.txt").first().waitFor();
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.waitForURL(/\/conversations\//);
    await shown(page, "here be dragons");
    await page.getByRole("tab", { name: "Files" }).click();
    await page.getByRole("treeitem", { name: "chart.txt" }).click();
    await page.locator(".cm-content").getByText("here be dragons").waitFor();
    await clean(there);
  },

  async "a change is seen as a difference"() {
    await settle("gwen");
    const there = await enter("gwen");
    const { page } = there;
    const id = await begin(
      "gwen",
      "$ git init -q . && echo calm > sea.txt && git add . && git -c user.name=x -c user.email=x@example.org commit -qm begin && " +
        "echo storm > sea.txt && printf 'chan%s' ged",
    );
    await page.goto(`conversations/${id}/changes`);
    await shown(page, "changed");
    await page.getByText("sea.txt").first().click();
    await page.getByText("storm", { exact: true }).first().waitFor();
    await clean(there);
  },

  async "mistakes in the settings are shown at their field"() {
    await settle("hugo");
    const there = await enter("hugo", { expected: [/status of 4(00|22)/] });
    const { page } = there;
    await page.goto("settings/model");
    await page.getByText("Separate key and base URL for the main model").click();
    const field = page.getByRole("textbox", { name: /address|URL/i }).first();
    await field.fill("not an address");
    await page.getByRole("button", { name: /^Save/ }).click();
    await page.locator('[aria-invalid="true"]').first().waitFor();
    await page.getByRole("link", { name: "Conversations" }).click();
    const dialog = page.getByRole("dialog").or(page.getByRole("alertdialog"));
    await dialog.getByRole("button", { name: "Cancel" }).click();
    expect(page.url().endsWith("/settings/model"), `it left for ${page.url()}`);
    await field.fill("");
    await page.getByRole("link", { name: "Agent" }).click();
    await page.getByRole("heading", { name: "Agent", level: 1 }).waitFor();
    await clean(there);
  },

  async "one sees nothing of another"() {
    await settle("ida");
    await settle("jane");
    const id = await begin("ida", "$ echo secret-of-ida");
    await call("ida", "PATCH", `/api/conversations/${id}`, { title: "The map of ida" });
    const there = await enter("jane", { expected: [/status of 404/] });
    const { page } = there;
    await page.goto("");
    await page.getByRole("textbox", { name: "Task" }).waitFor();
    for (const tab of ["", "/files", "/terminal"]) {
      await page.goto(`conversations/${id}${tab}`);
      await page.getByRole("alert").first().waitFor();
      expect(!(await page.content()).match(/secret-of-ida|The map of ida/), `jane sees it at ${tab}`);
    }
    await page.goto("settings/users");
    await page.getByText("Page not found").waitFor();
    await clean(there);
  },

  async "files are restored, and that is undone"() {
    await settle("jane", { confirmation_mode: false });
    const there = await enter("jane");
    const { page } = there;
    const id = await begin("jane", "$ echo first > kept; echo fi' 'rst");
    await page.goto(`conversations/${id}`);
    await shown(page, "fi rst");
    await state(page, "Done");
    await tell(page, "$ echo second > kept; echo sec' 'ond");
    await shown(page, "sec ond");
    await state(page, "Done");
    const kept = async () => (await call("jane", "GET", `/api/conversations/${id}/select-file?file=kept`)).code.trim();
    const checkpoints = async () => (await call("jane", "GET", `/api/conversations/${id}/checkpoints`)).checkpoints.length;
    for (let i = 0; i < 600 && (await checkpoints()) < 2; i++) await new Promise((go) => setTimeout(go, 50));
    const message = page.locator(".group\\/entry").filter({ has: page.getByRole("heading", { name: "You" }), hasText: "echo second" });
    await message.hover();
    await message.getByRole("button", { name: "Message actions" }).click();
    if (job.pictures) await page.screenshot({ path: `${job.pictures}/restore-menu.png` });
    await page.getByRole("menuitem", { name: "Restore files to before this message" }).click();
    await page.getByRole("button", { name: "Undo", exact: true }).waitFor();
    expect((await kept()) === "first", `restored: ${await kept()}`);
    if (job.pictures) await page.screenshot({ path: `${job.pictures}/restored.png` });
    await page.getByRole("button", { name: "Undo", exact: true }).click();
    await page.getByRole("button", { name: "Redo", exact: true }).waitFor();
    expect((await kept()) === "second", `undone: ${await kept()}`);
    await clean(there);
  },
});

/** cable is a line to the server that can be cut. */
async function cable(base) {
  const to = new URL(base);
  const ends = new Set();
  const server = createServer((near) => {
    const far = connect(Number(to.port), to.hostname);
    for (const end of [near, far]) {
      ends.add(end);
      end.on("error", () => {});
      end.on("close", () => {
        ends.delete(end);
        near.destroy();
        far.destroy();
      });
    }
    near.pipe(far).pipe(near);
  });
  const listen = (port) => new Promise((done) => server.listen(port, "127.0.0.1", done));
  await listen(0);
  const { port } = server.address();
  return {
    base: `http://127.0.0.1:${port}`,
    cut: () =>
      new Promise((done) => {
        server.close(done);
        for (const end of ends) end.destroy();
      }),
    mend: () => listen(port),
  };
}
