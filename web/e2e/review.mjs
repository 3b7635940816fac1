// What people do with what the agent changed: look, comment, take back, commit, open a pull request.
import { look } from "./looks.mjs";
import { call, clean, enter, expect, job, play } from "./stage.mjs";

const work =
  "sed -i 's/^step_3 = 3/step_3 = 33/; s/^step_30 = 30/step_30 = 3030/' wheel.py && mv docs/manual.txt docs/guide.txt && " +
  "base64 -d > picture.png <<< iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg== && " +
  "printf 'a\\nb\\n' > new.txt && rm old.txt && printf 'rea%s' dy";

// Three widths and both themes; a run for pictures uses all of them.
const shapes = job.pictures
  ? [1440, 820, 390].flatMap((width) => ["light", "dark"].map((theme) => [width, theme]))
  : [
      [1440, "light"],
      [820, "dark"],
      [390, "light"],
    ];
const wide = (page) => page.setViewportSize({ width: 1440, height: 900 });
const shown = (page, text) => page.locator("#main").getByText(text).first().waitFor();
const read = async (id, file) => (await call("rita", "GET", `/api/conversations/${id}/select-file?file=${encodeURIComponent(file)}`)).code;
const begin = async () =>
  (
    await call("rita", "POST", "/api/conversations", {
      repository: "ada/engine",
      git_provider: "gitea",
      initial_user_msg: `$ ${work}`,
    })
  ).conversation_id;
const row = (page, name) => page.getByRole("list", { name: "Changed files" }).getByRole("button", { name });

/** yes answers the question that is asked. */
const yes = (page, name) => page.getByRole("dialog").getByRole("button", { name, exact: true }).click();

/** lookAt looks at a dialog. Another width lays the page out anew, which closes it. */
async function lookAt(there, name, open) {
  const { page } = there;
  for (const shape of shapes) {
    await page.setViewportSize({ width: shape[0], height: 800 });
    await open();
    await look(there, name, [shape]);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
  }
  await wide(page);
  await open();
}

/** reviewing opens the changes of a new conversation after the agent has finished. */
async function reviewing(options) {
  const there = await enter("rita", options);
  const { page } = there;
  await wide(page);
  const id = await begin();
  await page.goto(`conversations/${id}/changes`);
  await shown(page, "ready");
  return { there, page, id };
}

await play({
  async "changes are reviewed and taken back"() {
    const { there, page, id } = await reviewing({ expected: [/status of 409/] });
    await row(page, /^Renamed guide\.txt/).waitFor();
    await row(page, /wheel\.py.*2 lines added, 2 removed/).click();
    await page.getByText("5 files changed").waitFor();
    await page.locator(".cm-content").getByText("step_3 = 33", { exact: true }).first().waitFor();
    await look(there, "review-diff", shapes);
    await wide(page);

    await row(page, /picture\.png/).click();
    await page.waitForFunction(() => [...document.querySelectorAll("figure img")].filter((i) => i.naturalWidth === 1).length === 2);
    await look(there, "review-image", shapes);
    await wide(page);
    await row(page, /guide\.txt/).click();
    await page.getByText("Renamed without changes").waitFor();

    // A part of a file, by the gutter.
    await row(page, /wheel\.py/).click();
    await page.locator(".cm-line-tools button.revert").last().click();
    await yes(page, "Revert");
    await row(page, /wheel\.py.*1 line added, 1 removed/).waitFor();
    expect((await read(id, "engine/wheel.py")).includes("step_30 = 30\n"), "the change is still there");
    expect((await read(id, "engine/wheel.py")).includes("step_3 = 33\n"), "the other change is gone too");

    // A file that was changed after it was shown stays as it is.
    await row(page, /new\.txt/).click();
    await page.locator(".cm-content").getByText("b", { exact: true }).first().waitFor();
    const before = await call("rita", "GET", `/api/conversations/${id}/select-file?file=engine/new.txt`);
    await page.getByRole("button", { name: "File actions" }).click();
    await page.getByRole("menuitem", { name: "Revert file" }).click();
    await page.getByRole("dialog").getByText("Revert all changes to new.txt").waitFor();
    await call("rita", "PUT", `/api/conversations/${id}/file`, { path: "engine/new.txt", content: "mine\n", etag: before.etag });
    await yes(page, "Revert");
    await page.getByText("A file has changed since it was shown").waitFor();
    expect((await read(id, "engine/new.txt")) === "mine\n", "a change was lost");

    // The rest.
    await page.locator(".cm-content").getByText("mine", { exact: true }).first().waitFor();
    await page.getByRole("button", { name: "More actions" }).click();
    await page.getByRole("menuitem", { name: "Revert everything" }).click();
    await yes(page, "Revert");
    await page.getByText("No changes yet").waitFor();
    await clean(there);
  },

  async "comments are sent as one message"() {
    const { there, page, id } = await reviewing();
    await row(page, /wheel\.py/).click();
    const line = page.locator(".cm-line-tools .cm-gutterElement:has(button.revert)").first();
    await line.hover();
    await line.locator("button.comment").click();
    await page.getByRole("textbox", { name: "Comment on engine/wheel.py:4" }).fill("Why 33?");
    await page.keyboard.press("Control+Enter");
    await row(page, /new\.txt/).click();
    await page.locator(".cm-content").getByText("b", { exact: true }).first().waitFor();
    await page.getByRole("button", { name: "Comment on this line" }).click();
    await page.getByRole("textbox", { name: /Comment on engine\/new\.txt:1/ }).fill("Say more here.");
    await page.getByRole("button", { name: "Add comment" }).click();
    await page.goto(`conversations/${id}/files`);
    await page.reload();
    await page.getByRole("treeitem", { name: "engine" }).click();
    await page.getByRole("treeitem", { name: "wheel.py" }).click();
    await page.getByRole("button", { name: "Comment on this line" }).click();
    await page.getByRole("textbox", { name: "Comment on engine/wheel.py:1" }).fill("Start at one.");
    await page.getByRole("button", { name: "Add comment" }).click();
    await page.getByText("3 comments").waitFor();
    await look(there, "review-comments", shapes);
    await wide(page);
    await page.getByRole("button", { name: "Send to agent" }).click();
    await page.getByText("Sent to the agent.").waitFor();
    await shown(page, "Please address these review comments");
    const events = await call("rita", "GET", `/api/conversations/${id}/events?limit=100&format=deckhand`);
    const said = JSON.stringify(events.events);
    for (const part of ["engine/wheel.py:4", "step_3 = 33", "Why 33?", "engine/new.txt:1", "engine/wheel.py:1", "Start at one."])
      expect(said.includes(part), `${part} was not sent: ${said}`);
    await page.reload();
    await shown(page, "Please address these review comments");
    expect((await page.getByText("3 comments").count()) === 0, "comments that were sent are still there");
    await clean(there);
  },

  async "changes are committed and a pull request is opened"() {
    const { there, page } = await reviewing();
    await row(page, /wheel\.py/).click();
    await page.getByRole("button", { name: "File actions" }).click();
    await page.getByRole("menuitem", { name: "Stage file" }).click();
    await row(page, /wheel\.py.*staged/).waitFor();
    await page.getByRole("combobox", { name: "Range" }).selectOption("staged");
    await page.getByText("1 file changed").waitFor();
    const dialog = page.getByRole("dialog");
    const message = dialog.getByRole("textbox", { name: "Message" });
    await lookAt(there, "review-commit", async () => {
      await page.getByText("1 file changed").waitFor();
      await page.getByRole("button", { name: "Commit", exact: true }).click();
      await page.waitForFunction(() => document.querySelector("dialog[open] textarea")?.value === "Update engine/wheel.py");
    });
    // The draft describes the changes to be committed, unless the user edited it.
    const only = dialog.getByRole("switch", { name: "Only staged changes" });
    await only.click();
    await page.waitForFunction(() => document.querySelector("dialog[open] textarea")?.value.includes("and 4 other files"));
    await only.click();
    await page.waitForFunction(() => document.querySelector("dialog[open] textarea")?.value === "Update engine/wheel.py");
    await dialog.getByRole("textbox", { name: "Branch" }).fill("round");
    await message.fill("Speed up the wheel");
    await only.click();
    await only.click();
    expect((await message.inputValue()) === "Speed up the wheel", "an edited message was replaced");
    await dialog.getByRole("button", { name: "Commit", exact: true }).click();
    await page.getByText(/Committed \w+ on round/).waitFor();
    await page.getByText("No changes in this range").waitFor();
    await page.getByRole("combobox", { name: "Range" }).selectOption({ label: "main" });
    await page.getByText("5 files changed").waitFor();

    await lookAt(there, "review-pull", async () => {
      await page.getByText("5 files changed").waitFor();
      await page.getByRole("button", { name: "Pull request", exact: true }).click();
      await dialog.getByRole("textbox", { name: "Title" }).waitFor();
    });
    expect((await dialog.getByRole("textbox", { name: "Branch to push" }).inputValue()) === "round", "another branch is suggested");
    expect((await dialog.getByRole("textbox", { name: "Target branch" }).inputValue()) === "main", "another target is suggested");
    await dialog.getByText("Uncommitted changes are not included").waitFor();
    await dialog.getByRole("textbox", { name: "Title" }).fill("A faster wheel");
    await dialog.getByRole("textbox", { name: "Description" }).fill("See step 3.");
    await dialog.getByRole("textbox", { name: "Reviewers" }).fill("@bob");
    await dialog.getByRole("button", { name: "Push and open" }).click();
    await page.getByText("Pull request #1 opened.").waitFor();
    await lookAt(there, "review-checks", async () => {
      await page.getByRole("button", { name: "#1" }).click();
      await dialog.getByText("unit tests: failure").waitFor();
      await dialog.getByText("Please add a test.").waitFor();
    });
    await dialog.getByRole("button", { name: "Ask the agent to fix this" }).first().click();
    await shown(page, "Failed check: unit tests: failure");
    await clean(there);
  },
});
