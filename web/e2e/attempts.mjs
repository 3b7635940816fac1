// Tries one task in several ways, starting from the message box, from a message and from the home page.
import { look } from "./looks.mjs";
import { begin, call, clean, enter, expect, play, settle } from "./stage.mjs";

const shown = (page, text) => page.locator("#main").getByText(text).first().waitFor();
const field = (page) => page.getByRole("textbox", { name: "Message the agent", exact: true });
const state = (page, name) => page.locator("#main header").getByText(name, { exact: true }).first().waitFor();
const dialog = (page, name) => page.getByRole("dialog", { name, exact: true });
const row = (page, n) => page.getByRole("row", { name: new RegExp(`^Attempt ${n}\\b`) });
const list = (id) => call("tove", "GET", `/api/conversations/${id}/attempts`);
const focused = (page) => page.evaluate(() => document.activeElement?.textContent?.trim());
const shapes = [
  [1440, "light"],
  [1024, "dark"],
  [390, "light"],
  [390, "dark"],
];

await play({
  async "a task is tried in three ways and one is kept"() {
    await settle("tove");
    const there = await enter("tove");
    const { page } = there;
    const id = await begin("tove", "$ git init -q && printf 'a\\nb\\n' > f && git add f && git commit -qm one && printf 'rea%s' dy");
    await page.goto(`conversations/${id}`);
    await shown(page, "ready");
    await state(page, "Done");
    await field(page).fill("/attempts $ printf 'a\\nB\\nc\\n' > f");
    await page.keyboard.press("Enter");
    const form = dialog(page, "Try several ways");
    expect(
      (await form.getByRole("textbox", { name: "Task", exact: true }).inputValue()).startsWith("$ printf"),
      "the task is not in the form",
    );
    await form.getByRole("button", { name: "Add attempt" }).click();
    await form.getByRole("group", { name: "Attempt 2" }).getByRole("textbox", { name: "Extra instructions" }).fill("touch pass");
    await form.getByRole("group", { name: "Attempt 3" }).getByRole("combobox", { name: "Reasoning effort" }).selectOption("high");
    await form.getByRole("textbox", { name: "Test command" }).fill("test -e pass || { echo the part is missing; exit 3; }");
    await look(there, "attempts-form", shapes);
    await page.setViewportSize({ width: 1440, height: 800 });
    await form.getByRole("button", { name: "Start 3 attempts" }).click();
    const table = dialog(page, "Attempts");
    await row(table, 1).getByText("Failed (3)").waitFor();
    await row(table, 2).getByText("Passed").waitFor();
    await row(table, 3).getByText("Failed (3)").waitFor();
    await row(table, 1).getByText("1 file").waitFor();
    await row(table, 1).getByText("+2").waitFor();
    await row(table, 3).getByText("High").waitFor();
    await row(table, 1).getByRole("button", { name: "Output" }).click();
    await table.getByText("the part is missing", { exact: true }).waitFor();
    await look(there, "attempts", shapes);
    await page.setViewportSize({ width: 1440, height: 800 });

    // Keyboard only: run the tests again, open an attempt, go back, keep it.
    await row(table, 2).getByRole("button", { name: "Run tests again: Attempt 2" }).press("Enter");
    await row(table, 2).getByText("Passed").waitFor();
    await row(table, 2).getByRole("link", { name: "Attempt 2" }).press("Enter");
    await shown(page, "Tests passed");
    await page.getByRole("button", { name: "Conversation menu" }).click();
    await page.getByRole("menuitem", { name: "Try several ways" }).click();
    await table.getByRole("link", { name: "Show all attempts" }).click();
    await row(table, 2).getByRole("button", { name: "Keep: Attempt 2" }).press("Enter");
    const sure = dialog(page, "Keep attempt 2?");
    await sure.getByText("2 other attempts will be permanently deleted").waitFor();
    await look(there, "attempts-keep", shapes.slice(2));
    await page.setViewportSize({ width: 1440, height: 800 });
    await sure.getByRole("button", { name: "Keep", exact: true }).press("Enter");
    await page.getByText("Attempt 2 kept").waitFor();
    await shown(page, "Tests passed");
    const [set] = (await list(id)).sets;
    expect(set.attempts.length === 1 && set.attempts[0].state === "kept", JSON.stringify(set));
    expect(page.url().includes(set.attempts[0].conversation_id), `the kept attempt is not open: ${page.url()}`);
    await clean(there);
  },

  async "attempts start from before a message, and all are stopped"() {
    await settle("tove");
    const there = await enter("tove");
    const { page } = there;
    const id = await begin("tove", "$ echo one > f && printf 'rea%s' dy");
    await page.goto(`conversations/${id}`);
    await shown(page, "ready");
    await state(page, "Done");
    await field(page).fill("$ sleep 500");
    await page.keyboard.press("Enter");
    await state(page, "Working");
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await state(page, "Stopped");
    const entry = page.locator(".group\\/entry").filter({ hasText: "sleep 500" }).first();
    await entry.getByRole("button", { name: "Message actions" }).click();
    await page.getByRole("menuitem", { name: "Try this in several ways" }).click();
    const form = dialog(page, "Try several ways");
    await form.getByText("starts just before your message").waitFor();
    await form.getByRole("button", { name: "Start 2 attempts" }).click();
    const table = dialog(page, "Attempts");
    await row(table, 1).getByText("Working").waitFor();
    await row(table, 2).getByText("Working").waitFor();
    await table.getByRole("button", { name: "Stop all" }).click();
    await row(table, 1).getByText("Stopped").waitFor();
    await row(table, 2).getByText("Stopped").waitFor();
    const [set] = (await list(id)).sets;
    expect(set.event_id > 0, JSON.stringify(set));
    await clean(there);
  },

  async "a new task is tried in several ways, or not"() {
    await settle("tove");
    const there = await enter("tove");
    const { page } = there;
    await page.goto("");
    await page.getByRole("textbox", { name: "Task" }).fill("$ echo from home > f");
    await page.getByRole("button", { name: "Options" }).click();
    await page.getByRole("button", { name: "Try several ways" }).click();
    const form = dialog(page, "Try several ways");
    await look(there, "attempts-home", shapes);
    await page.setViewportSize({ width: 1280, height: 500 });
    const last = form.getByRole("button", { name: "Start 2 attempts" });
    expect((await last.boundingBox()).y < 500, "the start button is not in the window");
    await page.setViewportSize({ width: 1280, height: 800 });
    const before = (await call("tove", "GET", "/api/conversations?limit=100")).results.length;
    await form.getByRole("button", { name: "Cancel" }).click();
    await form.waitFor({ state: "detached" });
    expect((await page.getByRole("textbox", { name: "Task" }).inputValue()) === "$ echo from home > f", "the task is lost");
    expect((await focused(page)) === "Try several ways", `the focus is at ${await focused(page)}`);
    expect((await call("tove", "GET", "/api/conversations?limit=100")).results.length === before, "a conversation was created");
    await page.getByRole("button", { name: "Try several ways" }).click();
    await form.getByRole("textbox", { name: "Test command" }).fill("");
    await form.getByRole("button", { name: "Start 2 attempts" }).click();
    const table = dialog(page, "Attempts");
    await row(table, 1).getByText("Done").waitFor();
    await row(table, 2).getByText("1 file").waitFor();
    await clean(there);
  },
});
