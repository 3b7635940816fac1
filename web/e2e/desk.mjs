// What people do beside the ten main ways: in the workspace, and with what the agent shows.
import { begin, call, clean, enter, expect, job, play, settle } from "./stage.mjs";

const state = (page, name) => page.locator("main header").getByText(name, { exact: true }).first().waitFor();
const shown = (page, text) => page.locator("#main").getByText(text).first().waitFor();

await play({
  async "files of all kinds are looked at"() {
    await settle("olaf");
    const there = await enter("olaf", { acceptDownloads: true });
    const { page } = there;
    const id = await begin(
      "olaf",
      "$ mkdir many && (cd many && seq 1 3000 | sed s/^/f/ | xargs touch) && head -c 3000 /dev/urandom > noise.bin && " +
        "printf '# Chart\\n\\n- reef\\n' > chart.md && printf 'rea%s' dy",
    );
    await page.goto(`conversations/${id}/files`);
    await shown(page, "ready");
    await page.getByRole("treeitem", { name: "noise.bin" }).click();
    await page.getByText("Cannot show this file").waitFor();
    const download = page.waitForEvent("download");
    await page.getByRole("link", { name: "Download noise.bin" }).last().click();
    expect((await download).suggestedFilename() === "noise.bin", "the download has another name");
    await page.getByRole("treeitem", { name: "chart.md" }).click();
    await page.getByRole("button", { name: "Preview" }).click();
    await page.getByRole("heading", { name: "Chart" }).waitFor();
    const folder = page.getByRole("treeitem", { name: "many" });
    await folder.click();
    await page.getByRole("treeitem", { name: "f100", exact: true }).waitFor();
    expect((await page.getByRole("treeitem").count()) < 200, "rows outside of the view are rendered");
    await folder.press("End");
    await page.locator('[role="treeitem"]:focus').getByText("noise.bin").waitFor();
    await page.locator('[role="treeitem"]:focus').press("ArrowUp");
    await page.locator('[role="treeitem"]:focus').getByText("chart.md").waitFor();
    await clean(there);
  },

  async "a file is made and saved"() {
    await settle("olaf");
    const there = await enter("olaf");
    const { page } = there;
    const id = await begin("olaf", "$ printf 'rea%s' dy");
    await page.goto(`conversations/${id}/files`);
    await shown(page, "ready");
    await page.getByRole("button", { name: "New file" }).click();
    await page.getByRole("textbox", { name: "Path" }).fill("log/first day.txt");
    await page.getByRole("button", { name: "Create" }).click();
    await page.locator(".cm-content").click();
    await page.keyboard.type("fair wind");
    await page.keyboard.press("Control+s");
    await page.getByText("first day.txt saved.").waitFor();
    const stored = await call("olaf", "GET", `/api/conversations/${id}/select-file?file=${encodeURIComponent("log/first day.txt")}`);
    expect(stored.code === "fair wind", `stored is ${JSON.stringify(stored.code)}`);
    await clean(there);
  },

  async "a terminal that loads late takes no keys from a message"() {
    await settle("olaf");
    const there = await enter("olaf");
    const { page } = there;
    let release;
    const late = new Promise((resolve) => (release = resolve));
    await page.route(/Screen-.*\.js/, (route) => late.then(() => route.continue()));
    await page.goto(`conversations/${await begin("olaf", "$ printf 'rea%s' dy")}`);
    await shown(page, "ready");
    await page.getByRole("tab", { name: "Terminal" }).click();
    const message = page.getByRole("textbox", { name: "Message the agent" });
    await message.pressSequentially("fair ");
    release();
    await page.locator(".xterm-helper-textarea").waitFor({ state: "attached" });
    await page.keyboard.type("wind");
    expect((await message.inputValue()) === "fair wind", `the message is ${await message.inputValue()}`);
    await clean(there);
  },

  async "what is not there is said"() {
    await settle("olaf");
    const there = await enter("olaf");
    const { page } = there;
    await page.goto(`conversations/${await begin("olaf")}/files`);
    await shown(page, "No messages yet");
    await state(page, "Ready");
    await page.getByText("It is created when the agent first needs it").waitFor();
    await page.goto(`conversations/${await begin("olaf", "$ echo new > made.txt; printf 'rea%s' dy")}/changes`);
    await shown(page, "ready");
    await page.getByText("No git repository").waitFor();
    await page.getByRole("button", { name: "Show files" }).click();
    await page.getByRole("treeitem", { name: "made.txt" }).waitFor();
    await clean(there);
  },

  async "a panel is asked for while the workspace is closed"() {
    await settle("olaf");
    const there = await enter("olaf");
    const { page } = there;
    await page.goto(`conversations/${await begin("olaf", "$ printf 'rea%s' dy")}`);
    await shown(page, "ready");
    await page.locator("h1").click();
    await page.keyboard.press("w");
    await page.getByRole("tab", { name: "Files" }).waitFor({ state: "detached" });
    await page.keyboard.press("Alt+2");
    await page.getByRole("tab", { name: "Files", selected: true }).waitFor();
    await clean(there);
  },

  async "an edit is approved by what it changes"() {
    await call("pia", "POST", "/api/settings", {
      llm_model: "openai/mate",
      llm_api_key: "sk-mate",
      llm_base_url: job.model,
      confirmation_mode: true,
    });
    const there = await enter("pia");
    const { page } = there;
    await page.goto(`conversations/${await begin("pia", "The wheel squeaks. <b>Mend</b> it.")}`);
    await shown(page, "The wheel squeaks. <b>Mend</b> it.");
    const ask = page.getByRole("alert", { name: "Approval" });
    for (const what of ["git init", '"view"', "wheel.grease()"]) {
      await ask.getByText(what).first().waitFor();
      if (what.startsWith("wheel")) await ask.getByText("/workspace/wheel.py").waitFor();
      await ask.getByRole("button", { name: /^Approve/ }).click();
    }
    await ask.getByText("http.server").first().waitFor();
    await ask.getByRole("button", { name: "Reject", exact: false }).first().click();
    await state(page, "Done");
    await clean(there);
  },

  async "a panel that does not come is loaded anew"() {
    await settle("olaf");
    const there = await enter("olaf", { expected: [/status of 404/] });
    const { page } = there;
    await page.goto(`conversations/${await begin("olaf", "$ printf 'rea%s' dy")}`);
    await shown(page, "ready");
    await page.route(/\/ui\/Network-.*\.js$/, (route) => route.fulfill({ status: 404, contentType: "application/json", body: "{}" }));
    await page.getByRole("textbox", { name: "Message the agent" }).fill("not lost");
    await page.getByRole("tab", { name: "Network" }).click();
    const again = page.getByRole("button", { name: "Try again" });
    await again.waitFor();
    await page.unroute(/\/ui\/Network-.*\.js$/);
    await again.click();
    await page.getByText("No requests yet").waitFor();
    expect((await page.getByRole("textbox", { name: "Message the agent" }).inputValue()) === "not lost", "the draft is gone");
    await clean(there);
  },

  async "words that are cut off stay"() {
    await settle("olaf", { llm_model: "openai/talker", llm_api_key: "sk-talker", llm_base_url: job.model });
    const there = await enter("olaf");
    const { page } = there;
    await page.goto(`conversations/${await begin("olaf", "Ahoy")}`);
    await shown(page, "These words come");
    await page.getByRole("button", { name: "Pause", exact: true }).click();
    await page.getByRole("button", { name: "Pause now" }).click();
    await state(page, "Paused");
    await shown(page, "These words come");
    await shown(page, "[Interrupted by pause]");
    await page.reload();
    await shown(page, "[Interrupted by pause]");
    await settle("olaf", { llm_base_url: "" });
    await clean(there);
  },

  async "statuses are still there after a reload"() {
    await settle("olaf");
    const there = await enter("olaf");
    const { page } = there;
    const id = await begin("olaf", "$ printf 'rea%s' dy");
    await page.goto(`conversations/${id}`);
    await shown(page, "ready");
    await call("olaf", "PUT", `/api/conversations/${id}/egress`, { mode: "off", allow: [] });
    await shown(page, "Network access changed");
    await page.reload();
    await shown(page, "Network access changed");
    await clean(there);
  },
});
