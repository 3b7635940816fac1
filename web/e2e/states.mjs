// Checks that every empty and every failed screen has a message and a next step, in both themes and three widths.
import { look } from "./looks.mjs";
import { begin, call, clean, enter, expect, job, play, settle, visit } from "./stage.mjs";

const all = [1280, 820, 390].flatMap((width) => ["light", "dark"].map((theme) => [width, theme]));
let looked = 0;

/** glance checks a page in one combination of theme and width, a different one on each call; when taking pictures, in all combinations. */
const glance = (there, name) => look(there, `state-${name}`, job.pictures ? all : [all[looked++ % all.length]]);

const failing = [/status of [45]\d\d/, /net::ERR_FAILED/, /Failed to fetch/];

/** fails makes requests to a path fail, with an error response or without a response, until the returned function is called. */
async function fails(there, path, status, body) {
  const broken = (route) => (status === 0 ? route.abort() : route.fulfill({ status, json: body }));
  await there.page.route(path, broken);
  return () => there.page.unroute(path, broken);
}

/** sees waits for the given texts, and for buttons or links with the given names. */
async function sees(there, said, steps = []) {
  for (const text of said) await there.page.getByText(text).first().waitFor();
  for (const name of steps) {
    const step = there.page.getByRole("button", { name }).or(there.page.getByRole("link", { name }));
    await step.first().waitFor();
  }
}

const broken = { error: "The database did not respond.", msg_id: "STATUS$ERROR" };
const full = { error: "The disk of the server is full. Free some space, then try again.", msg_id: "STORE$FULL" };
const busy = { error: "Too many requests. Try again in 3 seconds." };

const plays = {
  async "login fails"() {
    const there = await visit({ expected: failing });
    const { page } = there;
    await page.goto("login");
    await page.getByRole("textbox", { name: "Key" }).fill("no-key");
    await page.getByRole("button", { name: "Log in" }).click();
    await sees(there, ["Invalid, revoked or expired key"]);
    await glance(there, "login-refused");
    await fails(there, "**/api/login", 0);
    await page.getByRole("button", { name: "Log in" }).click();
    await sees(there, ["Cannot reach the server. Check your connection and try again."]);
    await glance(there, "login-unreachable");
    await clean(there);
  },
  async "home without conversations"() {
    await settle("kim");
    const there = await enter("kim");
    await there.page.goto("");
    await sees(there, ["No conversations yet. Start one above.", "Describe a task"], ["Start"]);
    await glance(there, "home-empty");
    await there.page.getByRole("searchbox", { name: "Search conversations" }).fill("zebra");
    await sees(there, ["No matching conversations."], ["Show all conversations"]);
    await glance(there, "home-no-match");
    await clean(there);
  },
  async "home fails"() {
    await settle("kim");
    const there = await enter("kim", { expected: failing });
    const mend = await fails(there, /api\/conversations\?/, 500, broken);
    await there.page.goto("");
    await sees(there, [broken.error], ["Try again"]);
    await glance(there, "home-failed");
    await mend();
    await there.page.getByRole("button", { name: "Try again" }).click();
    await sees(there, ["No conversations yet."]);
    await clean(there);
  },
  async "the server is away"() {
    const there = await enter("kim", { expected: failing });
    await fails(there, "**/api/me", 0);
    await there.page.goto("");
    await sees(there, ["This part of the page could not be loaded.", "Cannot reach the server."], ["Try again"]);
    await glance(there, "unreachable");
    await clean(there);
  },
  async "a page that is not there"() {
    const there = await enter("kim", { expected: failing });
    await there.page.goto("nothing");
    await sees(there, ["Page not found"], ["Go to conversations"]);
    await there.page.goto("conversations/nothing");
    await sees(there, ["Conversation not found", "It may have been deleted, or it may belong to another user."], ["Go to conversations"]);
    await glance(there, "conversation-missing");
    await fails(there, /api\/conversations\/elsewhere/, 500, broken);
    await there.page.goto("conversations/elsewhere");
    await sees(there, ["Could not load the conversation", broken.error], ["Try again", "Go to conversations"]);
    await glance(there, "conversation-failed");
    await clean(there);
  },
  async "a task cannot start"() {
    await settle("lea");
    const there = await enter("lea", { expected: failing });
    const { page } = there;
    await page.goto("");
    const attempt = async (status, body) => {
      const mend = await fails(there, "**/api/conversations", status, body);
      await page.getByRole("textbox", { name: "Task" }).fill("Mend the sail");
      await page.getByRole("button", { name: "Start", exact: true }).first().click();
      await sees(there, [body?.error ?? body?.message ?? "Cannot reach the server."]);
      await mend();
    };
    await attempt(429, busy);
    await glance(there, "start-busy");
    await attempt(507, full);
    await attempt(0);
    expect((await page.getByRole("textbox", { name: "Task" }).inputValue()) === "Mend the sail", "the task is lost");
    await clean(there);
  },
};

// The messages of empty workspace panels.
const empty = {
  changes: [["No git repository", "Ask the agent to create one."], ["Show files"]],
  files: [["one.txt"], ["Upload files"]],
  terminal: [["No open terminals"], ["Open a terminal"]],
  browser: [["The browser has not been used yet", "Ask it to open one."], []],
  ports: [["No servers running", "Ask the agent to start one, or use a terminal."], []],
  network: [["No requests yet"], ["Change"]],
};
let begun;
const talk = () => (begun ??= settle("mia").then(() => begin("mia", "$ echo one > one.txt")));
for (const [tab, [said, steps]] of Object.entries(empty)) {
  plays[`${tab} before anything happened`] = async () => {
    const there = await enter("mia", { expected: failing });
    const { page } = there;
    await page.goto(`conversations/${await talk()}/${tab}`);
    await page.locator("main header").getByText("Done", { exact: true }).first().waitFor();
    if (tab === "terminal") await page.getByRole("button", { name: "Detach" }).first().click(); // the tab opens a terminal automatically
    await sees(there, said, steps);
    await glance(there, `${tab}-empty`);
    await clean(there);
  };
}

// The requests of the panels, and the messages when they fail.
const reads = {
  changes: /\/git\//,
  files: /\/list-files/,
  browser: /\/events\?/,
  ports: /\/api\/.*\/ports/,
  network: /\/egress/,
};
for (const [tab, path] of Object.entries(reads)) {
  plays[`${tab} fails`] = async () => {
    const there = await enter("mia", { expected: failing });
    const { page } = there;
    const id = await talk();
    const late = tab === "browser"; // the conversation also reads events
    let mend = late ? undefined : await fails(there, path, 507, full);
    await page.goto(late ? `conversations/${id}` : `conversations/${id}/${tab}`);
    await page.locator("main header").getByText("Done", { exact: true }).first().waitFor();
    mend ??= await fails(there, path, 507, full);
    if (late) await page.keyboard.press("Alt+4");
    await sees(there, ["Could not load this", full.error], ["Try again"]);
    await glance(there, `${tab}-failed`);
    await mend();
    await page.getByRole("button", { name: "Try again" }).click();
    await sees(there, empty[tab][0]);
    await clean(there);
  };
}

const lists = {
  secrets: ["**/api/secrets", "No secrets yet. Add the secrets that the agent's commands need", "Add secret"],
  notifications: ["**/api/webhooks", "No webhooks yet. Add one to receive events at your own URL.", "Add webhook"],
  integrations: ["**/api/integrations", "No integrations yet. Add one to start the agent", "Add integration"],
  tools: ["", "No MCP servers yet. Add one to give the agent more tools.", "HTTP server"],
  keys: ["**/api/keys", "Created", "New key"],
  users: ["**/api/users", "kim", "Add user"],
  health: ["**/api/admin/health", "What the server needs to work", "Refresh"],
  account: ["**/api/usage", "this month", "Log out"],
};
for (const [section, [path, said, step]] of Object.entries(lists)) {
  plays[`settings ${section}`] = async () => {
    const there = await enter("admin", { expected: failing });
    const { page } = there;
    const mend = path ? await fails(there, path, 500, broken) : async () => {};
    await page.goto(`settings/${section}`);
    if (path) {
      await sees(there, [broken.error], ["Try again"]);
      await glance(there, `${section}-failed`);
      await mend();
      await page.getByRole("button", { name: "Try again" }).first().click();
    }
    await sees(there, [said], [step]);
    await glance(there, `${section}-empty`);
    await clean(there);
  };
}

plays["a connection is lost"] = async () => {
  const there = await enter("mia", { expected: [...failing, /ERR_INTERNET_DISCONNECTED/] });
  const { page } = there;
  await page.goto(`conversations/${await talk()}`);
  await page.locator("main header").getByText("Done", { exact: true }).first().waitFor();
  await there.context.setOffline(true);
  await page.getByRole("textbox", { name: "Message the agent" }).fill("Are you there?");
  await page.keyboard.press("Enter");
  await sees(there, ["Cannot reach the server. Check your connection and try again."]);
  expect((await page.getByRole("textbox", { name: "Message the agent" }).inputValue()) === "Are you there?", "the message is lost");
  await glance(there, "offline");
  await there.context.setOffline(false);
  await clean(there);
};

// Nothing is cut off while parts of the page are loading: placeholders have the size of the final content.
plays["loading"] = async () => {
  await call("mia", "GET", "/api/settings").catch(() => settle("mia"));
  const there = await enter("mia", { expected: failing });
  const { page } = there;
  let go;
  const held = new Promise((done) => (go = done));
  await page.route(/\/api\/conversations\?|\/git\/|\/api\/models/, async (route) => {
    await held;
    await route.continue();
  });
  await page.goto("");
  await page.getByRole("status").getByText("Loading…").first().waitFor({ state: "attached" });
  await glance(there, "home-loading");
  await page.goto(`conversations/${await talk()}/changes`);
  await page.getByRole("status").getByText("Loading…").first().waitFor({ state: "attached" });
  await glance(there, "changes-loading");
  go();
  await sees(there, empty.changes[0]);
  await clean(there);
};

await play(plays, 2);
