// Every page in both themes and both widths: nothing in the console, no request to another
// host, no violation that axe calls serious. With a folder for pictures, it leaves some.

import { faults, look } from "./looks.mjs";
import { begin, call, clean, enter, expect, job, play, settle, visit } from "./stage.mjs";

const sections = [
  "model",
  "agent",
  "sandbox",
  "tools",
  "secrets",
  "git",
  "notifications",
  "integrations",
  "appearance",
  "keys",
  "account",
  "users",
  "health",
];
const tabs = ["changes", "files", "terminal", "browser", "ports", "network"];

/** deadEnds are the links of a page to unknown paths or missing anchors. */
function deadEnds(page) {
  return page.evaluate(async () => {
    const dead = [];
    for (const link of document.querySelectorAll("article a[href], main summary a[href]")) {
      const to = new URL(link.href);
      if (to.origin !== location.origin) continue;
      const answer = await fetch(to.pathname, { headers: { Accept: "text/html" } });
      const there = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (!answer.ok || (to.hash && !there.getElementById(decodeURIComponent(to.hash.slice(1))))) dead.push(link.getAttribute("href"));
    }
    return dead;
  });
}

const quiet = (page) => page.waitForLoadState("networkidle", { timeout: 5000 }).catch(() => {}); // streams are never idle

const plays = {
  async login() {
    const there = await visit();
    await there.page.goto("login");
    await there.page.getByRole("textbox", { name: "Key" }).waitFor();
    await look(there, "login");
    await clean(there);
  },
  async "home of a new user"() {
    const there = await enter("kim");
    await there.page.goto("");
    await there.page.getByRole("button", { name: "Try the demo model" }).waitFor();
    await look(there, "welcome");
    await clean(there);
  },
  async home() {
    await settle("lea");
    for (const text of ["$ ls -la", "Tidy up the sail locker", "$ uname -a"]) await begin("lea", text);
    const there = await enter("lea");
    await there.page.goto("");
    await there.page.getByText("Done", { exact: true }).nth(2).waitFor();
    await look(there, "home");
    await there.page.keyboard.press("Escape");
    await there.page.keyboard.press("Control+k");
    await there.page.getByRole("dialog").waitFor();
    await look(there, "palette");
    await there.page.keyboard.press("Escape");
    await there.page.getByRole("button", { name: "Account menu: lea" }).click();
    await there.page.getByRole("menu").waitFor();
    await look(there, "menu");
    await there.page.getByRole("menuitem", { name: "Keyboard shortcuts" }).click();
    await there.page.getByRole("dialog").waitFor();
    await look(there, "keys");
    await clean(there);
  },
  async "nothing here"() {
    const there = await enter("lea", { expected: [/status of 404/] });
    await there.page.goto("nothing");
    await there.page.getByRole("heading", { level: 1 }).waitFor();
    await look(there, "nothing");
    await clean(there);
  },
};

let begun;
/** talk is the conversation that is looked at, the same for all. */
const talk = () =>
  (begun ??= call("mia", "POST", "/api/settings", { llm_model: "openai/mate", llm_api_key: "sk-mate", llm_base_url: job.model }).then(() =>
    begin("mia", "The wheel squeaks. Find out why and mend it."),
  ));
for (const tab of ["", ...tabs]) {
  plays[`conversation ${tab || "alone"}`] = async () => {
    const there = await enter("mia");
    const { page } = there;
    await page.goto(`conversations/${await talk()}${tab && "/" + tab}`);
    await page.locator("main header").getByText("Done", { exact: true }).first().waitFor();
    if (tab) await page.getByRole("tab", { selected: true }).first().waitFor();
    if (tab === "terminal")
      await page
        .locator(".xterm-screen")
        .first()
        .waitFor({ timeout: 20_000 })
        .catch(() => {});
    await quiet(page);
    await look(there, `conversation${tab && "-" + tab}`);
    await clean(there);
  };
}

for (const section of sections) {
  plays[`settings ${section}`] = async () => {
    const there = await enter("admin");
    await there.page.goto(`settings/${section}`);
    await there.page.getByRole("heading", { level: 1 }).waitFor();
    await quiet(there.page);
    await look(there, `settings-${section}`);
    await clean(there);
  };
}

for (const chapter of ["", "readme", "connect"]) {
  plays[`manual ${chapter || "index"}`] = async () => {
    const there = await enter("admin");
    await there.page.goto(`manual/${chapter}`);
    await quiet(there.page);
    await look(there, `manual${chapter && "-" + chapter}`);
    await clean(there);
  };
}

// The chapters are alike, so each is looked at once, where there is the least room.
plays["manual, every page"] = async () => {
  const there = await enter("admin");
  const { page } = there;
  await page.setViewportSize({ width: 390, height: 800 });
  await page.goto("manual/");
  const links = (where) => page.locator(where).evaluateAll((all) => all.map((a) => a.href));
  const chapters = await links(".side nav a");
  expect(chapters.length > 15 && chapters.length < 60, `${chapters.length} pages in the menu`);
  await page.goto("manual/decisions");
  chapters.push(...(await links("article table a")));
  expect(chapters.length > 50, `${chapters.length} pages`);
  const found = [];
  for (const chapter of chapters) {
    await page.goto(chapter);
    const here = [...(await faults(page)), ...(await deadEnds(page)).map((href) => `${href} leads nowhere`)];
    found.push(...here.map((fault) => `${chapter}: ${fault}`));
  }
  expect(found.length === 0, found.join("\n"));
  await clean(there);
};

/** What people search for, and the place that is listed first. */
const bestPlace = {
  systemd: "install#packages-and-systemd",
  "docker compose": "install#docker-compose",
  bedrock: "connect#amazon-bedrock",
  openrouter: "connect#openrouter",
  backup: "backup",
  upgrade: "upgrade",
  "disk full": "troubleshooting#the-disk-is-full",
};

plays["manual, search"] = async () => {
  const there = await enter("admin");
  const { page } = there;
  for (const [words, place] of Object.entries(bestPlace)) {
    await page.goto("manual/terminal");
    await page.keyboard.press("/");
    await page.keyboard.type(words);
    await page.getByRole("heading", { name: "result" }).waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(new RegExp(`/manual/${place}(#|$)`));
  }
  await clean(there);
};

plays["API reference"] = async () => {
  const there = await enter("admin");
  const { page } = there;
  await page.goto("docs#createConversation");
  await page.locator("#createConversation").getByText("initial_user_msg").waitFor();
  await look(there, "docs");
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.getByRole("searchbox", { name: "Filter operations" }).fill("post fork");
  await page.getByText("1 match").waitFor();
  await page.locator("#forkConversation").waitFor();
  expect(!(await page.locator("#createConversation").isVisible()), "what does not fit is still there");
  await clean(there);
};

await play(plays, 3);
