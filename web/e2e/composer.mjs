// What people do all day in a conversation: mention, command, plan, queue, search, and go from one
// conversation to another.
import { look } from "./looks.mjs";
import { begin, call, clean, enter, expect, job, play, settle } from "./stage.mjs";

const shown = (page, text) => page.locator("#main").getByText(text).first().waitFor();
const field = (page) => page.getByRole("textbox", { name: "Message the agent", exact: true });
const sane = (name, model) => settle(name, { llm_model: `openai/${model}`, llm_api_key: "sk-mate", llm_base_url: job.model });
const state = (page, name) => page.locator("#main header").getByText(name, { exact: true }).first().waitFor();
const threeWidths = [
  [1440, "light"],
  [1024, "dark"],
  [390, "light"],
  [390, "dark"],
];

await play({
  async "files and symbols are mentioned, and commands are run"() {
    await settle("rosa");
    const there = await enter("rosa");
    const { page } = there;
    const command = "---\\ndescription: Grease a part\\nargument-hint: [part]\\n---\\n$ echo greased $1";
    const id = await begin(
      "rosa",
      "$ mkdir -p src .deckhand/commands && printf 'package main\\n\\nfunc helmsman() {}\\n' > src/helm.go && " +
        `printf -- '${command}' > .deckhand/commands/grease.md && printf 'rea%s' dy`,
    );
    await page.goto(`conversations/${id}`);
    await shown(page, "ready");
    await state(page, "Done");
    await field(page).click();
    await page.keyboard.type("look at @helm");
    await page.getByRole("option", { name: "helm.go src/helm.go" }).waitFor();
    await page.getByRole("option", { name: "helmsman src/helm.go:3" }).waitFor();
    await look(there, "mention", threeWidths);
    // Another width is another message box.
    await page.setViewportSize({ width: 1440, height: 800 });
    await field(page).fill("");
    await page.keyboard.type("look at @helm");
    await page.getByRole("option", { name: "helmsman src/helm.go:3" }).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    expect((await field(page).inputValue()) === "look at @src/helm.go:3 (helmsman) ", `the field has ${await field(page).inputValue()}`);
    await page.keyboard.press("Enter");
    await shown(page, "You said:");
    await state(page, "Done");
    await page.keyboard.type("/gr");
    await page.getByRole("option", { name: "/grease" }).waitFor();
    await look(there, "command", threeWidths.slice(0, 1));
    await page.keyboard.press("Tab");
    await page.keyboard.type("wheel");
    await page.keyboard.press("Enter");
    await shown(page, "greased wheel");
    await state(page, "Done");
    await page.keyboard.press("ArrowUp");
    expect((await field(page).inputValue()) === "$ echo greased wheel", `history has ${await field(page).inputValue()}`);
    await page.keyboard.press("Escape");
    await clean(there);
  },

  async "in plan mode nothing is changed before the approval"() {
    await sane("rosa", "planner");
    const there = await enter("rosa");
    const { page } = there;
    const id = await begin("rosa");
    await page.goto(`conversations/${id}`);
    await field(page).fill("/plan Grease the wheel");
    await page.keyboard.press("Enter");
    await shown(page, "Grease wheel.py");
    await page.getByRole("button", { name: "Approve plan" }).waitFor();
    await look(there, "plan", threeWidths);
    const files = () => call("rosa", "GET", `/api/conversations/${id}/list-files`).catch(() => []);
    expect(!(await files()).includes("early.txt"), "the agent wrote a file before the plan was approved");
    await page.getByRole("button", { name: "Edit plan" }).click();
    const plan = page.getByRole("textbox", { name: "Plan mode" });
    await plan.fill(`${await plan.inputValue()}\n2. Try it out`);
    await look(there, "plan-edit", [
      [390, "light"],
      [390, "dark"],
    ]);
    await page.getByRole("dialog").getByRole("button", { name: "Approve plan" }).click();
    await shown(page, "2. Try it out");
    await shown(page, "carried out");
    expect((await files()).includes("done.txt"), "the approved plan was not carried out");
    expect((await page.getByRole("button", { name: "Approve plan" }).count()) === 0, "plan mode is still on");
    await clean(there);
  },

  async "queued messages are edited, moved, deleted and sent now"() {
    await sane("rosa", "talker");
    const there = await enter("rosa");
    const { page } = there;
    const id = await begin("rosa", "Talk");
    await page.goto(`conversations/${id}`);
    await shown(page, "These words come at once");
    for (const text of ["one", "two", "three"]) {
      await field(page).fill(text);
      await page.keyboard.press("Enter");
      await page.getByText(text === "one" ? "1 queued message" : `queued messages`).waitFor();
    }
    const queue = page.locator("details ol > li");
    await page.getByText("3 queued messages").waitFor();
    await queue.nth(1).getByRole("button", { name: "Edit message" }).click();
    await page.getByRole("textbox", { name: "Edit message" }).fill("zwei");
    await page.keyboard.press("Enter");
    await queue.nth(1).getByText("zwei").waitFor();
    await look(there, "queue", threeWidths);
    await queue.nth(2).getByRole("button", { name: "Move up" }).click();
    await queue.nth(1).getByText("three").waitFor();
    await queue.nth(0).getByRole("button", { name: "Delete message" }).click();
    await page.getByText("2 queued messages").waitFor();
    await queue.nth(1).getByRole("button", { name: "Send now" }).click();
    await page.getByText("2 queued messages").waitFor({ state: "hidden" });
    const said = page.getByRole("article").filter({ has: page.getByRole("heading", { name: "You" }) });
    const words = (await said.allInnerTexts()).join(" ");
    expect(/zwei.*three/s.test(words) && !/\bone\b|\btwo\b/.test(words), `the feed has ${words}`);
    expect((await page.getByText("Paused", { exact: true }).count()) === 0, "sending now looks like a pause");
    await page.getByRole("button", { name: "Stop" }).click();
    await state(page, "Stopped");
    await clean(there);
  },

  async "formulas and diagrams are drawn, and nothing in them runs"() {
    await sane("rosa", "writer");
    // The policy of the frame stops what the second diagram tries.
    const there = await enter("rosa", { expected: [/inline event handler violates/] });
    const { page } = there;
    const id = await begin("rosa", "    indented **text**\n  - as it is");
    await page.goto(`conversations/${id}`);
    await page.locator("math").nth(1).waitFor();
    await page.locator("img.diagram").nth(1).waitFor();
    const sizes = await page.locator("img.diagram").evaluateAll((list) => list.map((i) => [i.naturalWidth, i.naturalHeight, i.complete]));
    expect(
      sizes.every(([w, h]) => w > 50 && h > 20),
      `the diagrams are ${JSON.stringify(sizes)}`,
    );
    expect((await page.evaluate(() => globalThis.pwned)) === undefined, "a diagram ran a script");
    const mine = await page
      .getByRole("article")
      .first()
      .locator("p")
      .first()
      .evaluate((p) => [p.textContent, getComputedStyle(p).whiteSpace]);
    expect(mine[0].includes("indented **text**\n  - as it is") && mine[1].startsWith("pre"), `the message is ${JSON.stringify(mine)}`);
    expect((await page.getByText("System prompt").count()) === 0, "the system prompt is in the feed");
    await look(there, "drawn", threeWidths);
    await clean(there);
  },

  async "a failure is one card with the button that fixes it"() {
    await sane("rosa", "locked");
    const there = await enter("rosa");
    const { page } = there;
    const id = await begin("rosa", "Open the hatch");
    await page.goto(`conversations/${id}`);
    await page.getByRole("button", { name: "Change API key" }).waitFor();
    expect((await page.getByRole("alert").count()) === 1, `${await page.getByRole("alert").count()} cards for one failure`);
    await look(there, "failure", threeWidths);
    await page.getByRole("button", { name: "Change API key" }).click();
    await page.waitForURL(/settings\/model/);
    await page.locator('[data-field$="api_key"] :focus').waitFor();
    await clean(there);
  },

  async "the sidebar leads to other conversations, and the search into this one"() {
    await settle("sven");
    const there = await enter("sven");
    const { page } = there;
    await page.goto("");
    await page.locator("[data-new-task]").waitFor(); // from now on this browser knows what is new
    const other = await begin("sven", "Mend the sail, will you?");
    const id = await begin("sven", "$ printf 'the need%s is here' le");
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.goto(`conversations/${id}`);
    const bar = page.getByRole("navigation", { name: "Other conversations" });
    await bar.getByRole("link", { name: /Mend the sail/ }).waitFor();
    await bar.getByRole("link", { name: /Mend the sail.*Unread/ }).waitFor();
    await shown(page, "the needle is here");
    await look(there, "sidebar", threeWidths.slice(0, 1));
    await page.getByRole("button", { name: "Conversation menu" }).click();
    await page.getByRole("menuitem", { name: "Search this conversation" }).click();
    await page.getByRole("searchbox", { name: "Search this conversation" }).fill("needle");
    await page.getByText(/^1 \/ \d$/).waitFor();
    await page.locator(".found").waitFor();
    await look(there, "search", threeWidths);
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.keyboard.press("Escape");
    await bar.getByRole("link", { name: /Mend the sail/ }).click();
    await page.waitForURL(new RegExp(other));
    await bar.locator('[aria-current="page"]').getByText("Mend the sail").waitFor();
    expect((await bar.getByRole("link", { name: /Mend the sail.*Unread/ }).count()) === 0, "what is looked at is still new");
    await page.setViewportSize({ width: 390, height: 800 });
    await page.getByRole("button", { name: "Show or hide the sidebar" }).click();
    await bar.getByRole("link", { name: "New conversation" }).waitFor();
    await look(there, "sidebar-phone", [[390, "dark"]]);
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.keyboard.press("Alt+n");
    await page.waitForURL(/\/$/);
    await page.locator("[data-new-task]:focus").waitFor();
    await clean(there);
  },
});
