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
      "$ mkdir -p src .deckhand/commands 'My Notes' && touch 'My Notes/ship log.txt' && " +
        "printf 'package main\\n\\nfunc helmsman() {}\\n' > src/helm.go && " +
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
    // A name with spaces is quoted.
    await field(page).fill("");
    await page.keyboard.type('see @"ship');
    await page.getByRole("option", { name: "ship log.txt My Notes/ship log.txt" }).waitFor();
    await page.keyboard.press("Enter");
    expect((await field(page).inputValue()) === 'see @"My Notes/ship log.txt" ', `the field has ${await field(page).inputValue()}`);
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
    const queue = page.getByRole("region", { name: /queued message/ }).getByRole("listitem");
    await page.getByText("3 queued messages").waitFor();
    const said = page.getByRole("article").filter({ has: page.getByRole("heading", { name: "You" }) });
    const feed = async () => (await said.allInnerTexts()).join(" ");
    expect(!/\bone\b|\btwo\b|\bthree\b/.test(await feed()), `queued messages are in the feed too: ${await feed()}`);
    await queue.nth(1).getByRole("button", { name: "Edit message" }).click();
    await page.getByRole("textbox", { name: "Edit message" }).fill("zwei");
    await page.keyboard.press("Enter");
    await queue.nth(1).getByText("zwei").waitFor();
    await look(there, "queue", threeWidths);
    await queue.nth(2).getByRole("button", { name: "Move up" }).focus();
    await page.keyboard.press("Enter");
    await queue.nth(1).getByText("three").waitFor();
    await page.keyboard.press("Alt+ArrowUp");
    await queue.nth(0).getByText("three").waitFor();
    await page.keyboard.press("Alt+ArrowDown");
    await queue.nth(1).getByText("three").waitFor();
    await queue.nth(0).getByRole("button", { name: "Delete message" }).click();
    await page.getByText("2 queued messages").waitFor();
    await page.getByRole("button", { name: "Send all now" }).click();
    await page.getByText("2 queued messages").waitFor({ state: "hidden" });
    await said.filter({ hasText: "three" }).waitFor();
    const words = await feed();
    expect(/three.*zwei/s.test(words) && !/\bone\b|\btwo\b/.test(words), `the feed has ${words}`);
    expect(words.match(/zwei/g).length === 1, `a message is there twice: ${words}`);
    const all = (await page.getByRole("article").allInnerTexts()).join(" ");
    expect(/These words.*three.*zwei/s.test(all), `the messages stand before the answer that did not know them: ${all}`);
    await page.reload();
    await said.filter({ hasText: "zwei" }).waitFor();
    expect(/Talk.*three.*zwei/s.test(await feed()), `after a reload the feed has ${await feed()}`);
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
    await page.goto("");
    await page.getByRole("textbox", { name: "Task" }).fill("\n    indented **text**\n  - as it is\n");
    await page.getByRole("button", { name: /^Start/ }).click();
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
    expect(mine[0].includes("    indented **text**\n  - as it is") && mine[1].startsWith("pre"), `the message is ${JSON.stringify(mine)}`);
    expect((await page.getByText("System prompt").count()) === 0, "the system prompt is in the feed");
    await look(there, "drawn", threeWidths);
    await clean(there);
  },

  async "a call that is retried is one card, which ends when it succeeds"() {
    await sane("rosa", "limited");
    const there = await enter("rosa");
    const { page } = there;
    await page.goto(`conversations/${await begin("rosa", "Set the sails")}`);
    await page.getByText(/^Retry [12] of 4/).waitFor();
    await look(there, "retry", threeWidths.slice(0, 1));
    await shown(page, "The wind is back.");
    await page.getByText("Succeeded after 2 retries").waitFor();
    expect((await page.locator("#main").getByText("Slow down.").count()) === 1, "there is more than one card");
    await look(there, "retry-done", threeWidths);
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

  async "files that the user changed too are not restored without a question"() {
    await settle("rosa");
    const there = await enter("rosa", { expected: [/status of 409/] });
    const { page } = there;
    const id = await begin("rosa", "$ echo first > kept; echo fi' 'rst");
    await page.goto(`conversations/${id}`);
    await shown(page, "fi rst");
    await state(page, "Done");
    await field(page).fill("$ echo second > kept; echo sec' 'ond");
    await page.keyboard.press("Enter");
    await shown(page, "sec ond");
    await state(page, "Done");
    const main = page.locator("#main");
    const message = (text) => page.getByRole("article").filter({ has: page.getByRole("heading", { name: "You" }), hasText: text });
    const kept = async () => (await call("rosa", "GET", `/api/conversations/${id}/select-file?file=kept`)).code.trim();
    const checkpoints = async () => (await call("rosa", "GET", `/api/conversations/${id}/checkpoints`)).checkpoints.length;
    for (let i = 0; i < 600 && (await checkpoints()) < 2; i++) await new Promise((go) => setTimeout(go, 50));
    const { etag } = await call("rosa", "GET", `/api/conversations/${id}/select-file?file=kept`);
    await call("rosa", "PUT", `/api/conversations/${id}/file`, { path: "kept", content: "mine", etag });
    const undo = async () => {
      await field(page).fill("/undo");
      await page.keyboard.press("Escape");
      await page.keyboard.press("Enter");
      await page.getByRole("dialog", { name: "Files changed by you and the agent" }).getByText("kept", { exact: true }).waitFor();
    };
    const dialog = page.getByRole("dialog");
    await undo();
    await look(there, "restore-conflict", threeWidths);
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    expect((await kept()) === "mine", `cancelled: ${await kept()}`);
    await undo();
    await page.keyboard.press("Enter"); // the safe choice has the focus
    await page.getByText(/Restored to before “\$ echo second/).waitFor();
    expect((await kept()) === "mine", `kept: ${await kept()}`);
    await main.getByRole("button", { name: "Undo", exact: true }).click();
    await message("echo second").waitFor();
    await undo();
    await page.getByRole("button", { name: "Restore these too" }).click();
    await page.getByText(/Restored to before “\$ echo second/).waitFor();
    expect((await kept()) === "first", `overwritten: ${await kept()}`);
    await clean(there);
  },

  async "turns are undone and redone, with and without file changes"() {
    await settle("rosa");
    const there = await enter("rosa");
    const { page } = there;
    const id = await begin("rosa", "Who are you?");
    await page.goto(`conversations/${id}`);
    await shown(page, "You said:");
    await state(page, "Done");
    const main = page.locator("#main");
    const message = (text) => page.getByRole("article").filter({ has: page.getByRole("heading", { name: "You" }), hasText: text });
    // Undoing a turn without file changes restores only the conversation.
    await message("Who are you?").hover();
    await message("Who are you?").getByRole("button", { name: "Message actions" }).click();
    await page.getByRole("menuitem", { name: "Restore conversation to before this message" }).click();
    await page.getByText("Restored to before “Who are you?”").waitFor();
    await page.waitForFunction(() => document.querySelector("form textarea")?.value === "Who are you?");
    expect((await message("Who are you?").count()) === 0, "what was restored is still in the feed");
    await main.getByRole("button", { name: "Undo", exact: true }).click();
    await message("Who are you?").waitFor();
    expect((await field(page).inputValue()) === "", "the message is still in the box");

    for (const text of ["$ echo first > kept; echo fi' 'rst", "$ echo second > kept; echo sec' 'ond"]) {
      await field(page).fill(text);
      await page.keyboard.press("Enter");
      await shown(page, text.includes("first") ? "fi rst" : "sec ond");
      await state(page, "Done");
    }
    const kept = async () => (await call("rosa", "GET", `/api/conversations/${id}/select-file?file=kept`)).code.trim();
    const checkpoints = async () => (await call("rosa", "GET", `/api/conversations/${id}/checkpoints`)).checkpoints.length;
    for (let i = 0; i < 600 && (await checkpoints()) < 2; i++) await new Promise((go) => setTimeout(go, 50));
    await field(page).fill("/undo");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Enter");
    await page.getByText(/Restored to before “\$ echo second/).waitFor();
    await page.waitForFunction(() => document.querySelector("form textarea")?.value.startsWith("$ echo second"));
    expect((await kept()) === "first", `undone: ${await kept()}`);
    expect((await main.getByText("sec ond").count()) === 0, "the turn is still in the feed");
    // The notice of a restore must not block the next message.
    const send = await page.getByRole("button", { name: "Send" }).boundingBox();
    const top = await page.evaluate(
      ([x, y]) => document.elementFromPoint(x, y)?.closest("button")?.title,
      [send.x + send.width / 2, send.y + send.height / 2],
    );
    expect(top === "Send", `above the Send button is ${top}`);
    await look(there, "undone", threeWidths);
    await page.setViewportSize({ width: 1440, height: 900 });
    await main.getByRole("button", { name: "Show", exact: true }).click();
    await shown(page, "sec ond");
    await look(there, "undone-shown", threeWidths);
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.reload();
    await page.getByText(/Restored to before “\$ echo second/).waitFor();
    expect((await main.getByText("sec ond").count()) === 0, "the turn is in the feed again after a reload");
    await field(page).fill("/redo");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Enter");
    await shown(page, "sec ond");
    expect((await kept()) === "second", `redone: ${await kept()}`);
    expect((await message("echo second").count()) === 1, "the message is not there once");

    // Compare two points in time, then two forks.
    await message("echo second").hover();
    await message("echo second").getByRole("button", { name: "Message actions" }).click();
    await page.getByRole("menuitem", { name: "Compare files before this message with now" }).click();
    const dialog = page.getByRole("dialog", { name: "Compare files" });
    await dialog.getByText("1 file changed").waitFor();
    await dialog.locator(".cm-content").getByText("second", { exact: true }).first().waitFor();
    await dialog.locator(".cm-content").getByText("first", { exact: true }).first().waitFor();
    await look(there, "compare", threeWidths.slice(0, 2));
    await dialog.getByRole("combobox", { name: "Other point in time" }).selectOption("Now");
    await dialog.getByText("No differences").waitFor();
    await page.keyboard.press("Escape");
    await message("echo second").hover();
    await message("echo second").getByRole("button", { name: "Message actions" }).click();
    await page.getByRole("menuitem", { name: "Fork from here" }).click();
    await page.getByText("Copied from another conversation").waitFor();
    await page.getByRole("button", { name: "Compare with original" }).click();
    await dialog.getByText(/file changed|No differences/).waitFor();
    await dialog.getByRole("button", { name: /^Compare with…: / }).click();
    await look(there, "compare-fork", [[390, "dark"]]);
    await clean(there);
  },

  async "the sidebar leads to other conversations, and the search into this one"() {
    await settle("sven");
    const there = await enter("sven");
    const { page } = there;
    await page.goto("");
    await page.locator("[data-new-task]").waitFor(); // from now on this browser knows what is new
    const other = await begin("sven", "Mend the sail, will you?");
    let streams = 0;
    page.on("request", (r) => r.url().includes("/api/conversations/stream") && streams++);
    const id = await begin("sven", "$ printf 'the need%s is here' le");
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.goto(`conversations/${id}`);
    const bar = page.getByRole("navigation", { name: "Other conversations" });
    await bar.getByRole("link", { name: /Mend the sail/ }).waitFor();
    await bar.getByRole("link", { name: /Mend the sail.*Unread/ }).waitFor();
    await shown(page, "the needle is here");
    await look(there, "sidebar", threeWidths.slice(0, 1));
    // Changed rows arrive on the stream that is already open. No new stream is opened.
    const before = streams;
    for (const title of ["Mend the mast", "Mend the keel", "Mend the sail"]) {
      await call("sven", "PATCH", `/api/conversations/${other}`, { title });
      await bar.getByRole("link", { name: new RegExp(title) }).waitFor();
    }
    expect(before === 1 && streams === 1, `the sidebar opened ${before}, then ${streams} streams`);
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
