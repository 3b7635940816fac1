// A user's own commands in the settings, and /compact.
import { look } from "./looks.mjs";
import { begin, clean, enter, expect, job, play, settle } from "./stage.mjs";

const shown = (page, text) => page.locator("#main").getByText(text).first().waitFor();
const field = (page) => page.getByRole("textbox", { name: "Message the agent", exact: true });
const state = (page, name) => page.locator("#main header").getByText(name, { exact: true }).first().waitFor();

const threeWidths = [
  [1280, "light"],
  [820, "dark"],
  [390, "light"],
];

await play({
  async "own commands are stored, used and removed"() {
    await settle("tove");
    const there = await enter("tove", { expected: [/422/] });
    const { page } = there;
    await page.goto("settings/commands");
    await page.getByText("No commands yet.").waitFor();
    await page.getByRole("button", { name: "Add command" }).click();
    await page.getByRole("textbox", { name: "Name" }).fill("review");
    const prompt = "---\ndescription: Grease a part\nargument-hint: [part]\n---\n$ echo greased $1";
    await page.getByRole("textbox", { name: "Prompt" }).fill(prompt);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("This is the name of a built-in command.").waitFor();
    await look(there, "command-dialog");
    await page.getByRole("textbox", { name: "Name" }).fill("/grease");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Grease a part", { exact: true }).waitFor();
    await look(there, "commands");
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByRole("button", { name: "Add command" }).click();
    await page.getByRole("textbox", { name: "Name" }).fill("Grease");
    await page.getByRole("textbox", { name: "Prompt" }).fill("Again");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("You already have the command /grease.").waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();

    const id = await begin("tove", "$ echo ready");
    await page.goto(`conversations/${id}`);
    await state(page, "Done");
    await field(page).click();
    await page.keyboard.type("/undoo");
    await page.keyboard.press("Enter");
    await page.getByText("No command /undoo. Did you mean /undo?").waitFor();
    await look(there, "command-unknown", threeWidths);
    await page.setViewportSize({ width: 1280, height: 800 });
    await field(page).press("Enter"); // another width has another message box
    await page.getByRole("button", { name: "Send anyway" }).click();
    await shown(page, "/undoo");
    await state(page, "Done");
    await field(page).fill("");
    await page.keyboard.type("/");
    const yours = page.getByRole("group", { name: "Your commands" });
    await yours.getByRole("option", { name: "/grease" }).waitFor();
    expect(
      (await page.getByRole("group", { name: "Built-in commands" }).getByRole("option").count()) > 11,
      "commands are missing in the list",
    );
    await page.keyboard.press("ArrowUp");
    expect((await yours.locator('[aria-selected="true"]').count()) === 1, "the last command is not selected");
    await look(there, "command-list", threeWidths.slice(0, 1));
    await page.setViewportSize({ width: 1280, height: 800 });
    await field(page).fill("");
    await page.keyboard.type("/gr");
    await page.getByRole("option", { name: "/grease" }).waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.type("wheel");
    await page.keyboard.press("Enter");
    await shown(page, "greased wheel");
    await state(page, "Done");

    await page.goto("settings/commands");
    await page.getByRole("button", { name: "Actions for /grease" }).click();
    await page.getByRole("menuitem", { name: "Remove" }).click();
    await page.getByRole("alertdialog").or(page.getByRole("dialog")).getByRole("button", { name: "Remove" }).click();
    await page.getByText("No commands yet.").waitFor();
    await clean(there);
  },

  async "the history is compacted on request"() {
    await settle("tove", { llm_model: "openai/packer", llm_api_key: "sk-mate", llm_base_url: job.model });
    const there = await enter("tove", { expected: [/409/] });
    const { page } = there;
    const id = await begin("tove", "Remember the anchor");
    await page.goto(`conversations/${id}`);
    await shown(page, "Answer 1");
    await state(page, "Done");
    await field(page).fill("/compact");
    await page.keyboard.press("Enter");
    await page.getByText("There is nothing to compact yet").waitFor();
    await field(page).fill("And the rope");
    await page.keyboard.press("Enter");
    await shown(page, "Answer 2");
    await state(page, "Done");
    await field(page).fill("/compact keep the anchor");
    await page.keyboard.press("Enter");
    await shown(page, "Earlier history summarised for the model");
    expect((await page.getByText("Compacting the history").count()) === 0, "it still says that it compacts");
    await look(there, "compacted");
    await page.getByText("Earlier history summarised for the model").click();
    await shown(page, "The anchor is remembered.");
    expect((await page.locator("#main header").getByText("Done", { exact: true }).count()) > 0, "the conversation is not done");
    await clean(there);
  },
});
