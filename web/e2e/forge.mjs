// Works on a real forge: commits, pushes, opens a pull request, and lets the agent fix its failed checks and review comments.
import { look } from "./looks.mjs";
import { ask, call, clean, enter, expect, job, play } from "./stage.mjs";

const shown = (page, text) => page.locator("#main").getByText(text).first().waitFor();

await play({
  async "a pull request is opened and reviewed on the forge"() {
    const there = await enter("ada");
    const { page } = there;
    await page.setViewportSize({ width: 1440, height: 900 });
    const made = await call("ada", "POST", "/api/conversations", {
      repository: job.repository,
      git_provider: "gitea",
      initial_user_msg: "$ echo round > wheel.txt && printf 'rea%s' dy",
    });
    await page.goto(`conversations/${made.conversation_id}/changes`);
    await shown(page, "ready");
    await page
      .getByRole("list", { name: "Changed files" })
      .getByRole("button", { name: /wheel\.txt/ })
      .waitFor();
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "Commit", exact: true }).click();
    await dialog.getByRole("textbox", { name: "Branch" }).fill("round");
    await dialog.getByRole("textbox", { name: "Message" }).fill("Make it round");
    await dialog.getByRole("button", { name: "Commit", exact: true }).click();
    await page.getByText(/Committed \w+ on round/).waitFor();

    await page.getByRole("button", { name: "Pull request", exact: true }).click();
    await dialog.getByRole("textbox", { name: "Title" }).fill("A round wheel");
    await dialog.getByRole("textbox", { name: "Description" }).fill("It rolls.");
    await dialog.getByRole("textbox", { name: "Reviewers" }).fill(job.reviewer);
    await dialog.getByRole("button", { name: "Push and open" }).click();
    await page.getByText("Pull request #1 opened.").waitFor();

    await ask("review");
    await page.reload();
    await page.getByRole("button", { name: "#1" }).click();
    await dialog.getByText("unit tests: failure").waitFor();
    await dialog.getByText("Please add a test.").waitFor();
    await dialog.getByText("Which radius?").waitFor();
    await dialog.getByText("wheel.txt:1").first().waitFor();
    await look(there, "forge-checks", [[1440, "light"]]);
    await dialog.getByRole("button", { name: "Ask the agent to fix this" }).first().click();
    await shown(page, "Failed check: unit tests: failure");
    const events = await call("ada", "GET", `/api/conversations/${made.conversation_id}/events?limit=100&format=deckhand`);
    expect(JSON.stringify(events.events).includes("Failed check: unit tests: failure"), "the agent was not asked");
    await clean(there);
  },
});
