// The health of the server, as an admin sees it and acts on it.
import { look } from "./looks.mjs";
import { begin, clean, enter, expect, job, play, settle } from "./stage.mjs";

const shapes = [
  [1280, "light"],
  [820, "dark"],
  [360, "light"],
  [360, "dark"],
];

const card = (page, name) => page.getByRole("region", { name, exact: true });

await play({
  async "an admin ends the sandbox of a user"() {
    await settle("ada", { confirmation_mode: false });
    const id = await begin("ada", "$ echo kept > kept; sleep 1000");
    const user = await enter("ada");
    await user.page.goto(`conversations/${id}`);
    await user.page.locator("#main").getByText("sleep 1000").first().waitFor();

    const there = await enter("admin");
    const { page } = there;
    await page.goto("settings/health");
    await page.getByRole("heading", { name: "Health", level: 1 }).waitFor();
    const box = card(page, "Sandboxes").getByRole("listitem").filter({ hasText: id });
    await box.waitFor();
    // What it uses comes with the next looks, without a click.
    await box.getByText(/\d+(\.\d+)? \/ 2/).waitFor();
    await box
      .getByText(/MiB \/ /)
      .first()
      .waitFor();
    await card(page, "Parts").getByText("Database").waitFor();
    await card(page, "Parts")
      .getByText(/^SQLite 3\./)
      .waitFor();
    await card(page, "Server")
      .getByText(/^go1\./)
      .waitFor();
    await card(page, "Server").getByText("Operating system").waitFor();
    await card(page, "Parts").getByText("scripted").waitFor();
    await card(page, "Server").getByText("Last backup").waitFor();
    expect((await card(page, "Queue").getByText("Conversations at work").count()) === 1, "the queue is missing");
    await look(there, "health", shapes);
    await page.setViewportSize({ width: 1280, height: 800 });
    if (job.pictures) await page.screenshot({ path: `${job.pictures}/health-full.png`, fullPage: true });

    // With the keyboard alone: the first answer is no.
    const end = box.getByRole("button", { name: /^End the sandbox of ada/ });
    await end.focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByText("Files are kept.").waitFor();
    await look(there, "health-end", shapes);
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.keyboard.press("Enter"); // Cancel
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect((await box.count()) === 1, "the sandbox was ended without consent");
    await end.focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByRole("button", { name: "End", exact: true }).press("Enter");
    await page.getByText("Sandbox ended.").waitFor();
    await box.waitFor({ state: "detached" });

    // The conversation says so, and goes on with the next message.
    await user.page.locator("#main").getByText("an administrator ended the sandbox").waitFor();
    if (job.pictures) await user.page.screenshot({ path: `${job.pictures}/health-ended.png` });
    await user.page.getByRole("textbox", { name: "Message the agent", exact: true }).fill("$ cat kept; echo go' 'on");
    await user.page.keyboard.press("Enter");
    await user.page.locator("#main").getByText("go on").first().waitFor();
    await clean(user);
    await clean(there);
  },

  async "others see nothing of it"() {
    const there = await enter("ada");
    await there.page.goto("settings/health");
    await there.page.getByText("Page not found").waitFor();
    const answer = await there.context.request.get("api/admin/health");
    expect(answer.status() === 403, `ada gets ${answer.status()}`);
    await clean(there);
  },

  async "a server that is away is said, and what was shown stays"() {
    const there = await enter("admin", { expected: [/status of 500/] });
    const { page } = there;
    await page.goto("settings/health");
    await card(page, "Queue").waitFor();
    await page.route("**/api/admin/health", (route) => route.fulfill({ status: 500, json: { error: "The store is away", msg_id: "x" } }));
    await page.getByText("Cannot refresh: The store is away").waitFor();
    await card(page, "Queue").waitFor();
    await page.unroute("**/api/admin/health");
    await page.getByText("Cannot refresh").waitFor({ state: "detached" });
    await clean(there);
  },
});
