// The way of a person through a stock build of the legacy front end, versions 0.53.0 and 0.59.0.
// Elements are found by the test ids of its sources where there are any.
import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { ask, call, expect, job, play, visit } from "./stage.mjs";

/** patience ends what never comes. */
const patience = 120_000;

/** Errors that the front end logs without a fault of the server. */
const harmless = [
  /status of (401|404)/, // the login page; settings before the first save; a provider that is not connected
  /net::ERR_|WebSocket connection to|status of 50\d/, // while the server is down
  /React error #418/, // these builds say so on every server
  /console: (AxiosError|Error fetching|Failed to|WebSocket)/,
  // the app tab asks both hosts until an application listens
  /foreign: http:\/\/p\d+-\w+\.localhost|XMLHttpRequest at 'http:\/\/p\d+-\w+\.localhost/,
  /fonts\.googleapis\.com/, // 0.59 asks for its fonts there; the page's policy forbids it
];

/** The diff editor comes from a CDN. The files are those of the npm package, and the page's policy applies to them. */
const editor = /^https:\/\/cdn\.jsdelivr\.net\/npm\/monaco-editor@[^/]+\/(.*)$/;

let there, page;

/** arrive opens the login link in a browser of its own. */
async function arrive() {
  there = await visit({ expected: [...harmless, /foreign: https:\/\/cdn\.jsdelivr\.net/], viewport: { width: 1600, height: 900 } });
  there.context.setDefaultTimeout(patience);
  await there.context.route(editor, async (route) => {
    const path = editor.exec(route.request().url())[1];
    const type = path.endsWith(".css") ? "text/css" : path.endsWith(".ttf") ? "font/ttf" : "text/javascript";
    await route.fulfill({
      body: await readFile(join(job.monaco, path)),
      contentType: type,
      headers: { "Access-Control-Allow-Origin": "*" },
    });
  });
  page = there.page;
  await page.goto(job.link);
  await either("home-screen", "ai-config-modal").waitFor();
}

const id = (name) => page.locator(`[data-testid="${name}"]`);
const either = (...names) => page.locator(names.map((name) => `[data-testid="${name}"]`).join(", ")).first();
const input = () => page.locator('[data-testid="chat-input"] textarea, [data-testid="chat-input"][contenteditable="true"]').first();
const conversation = () => new URL(page.url()).pathname.split("/")[2];

/** What each tab shows, by its label. */
const shown = {
  Terminal: () => page.locator(".xterm-screen"),
  Changes: () => id("file-diff-viewer-outer").first(),
  App: () => page.locator("iframe"),
};

/** tab opens a tab beside the chat: a link in 0.53, a button in 0.59 that closes what is open. */
async function tab(label) {
  const link = page.locator('a[href^="/conversations/"]').filter({ hasText: new RegExp(`^${label}`) });
  const button = page.locator(`button[aria-label="${label}"] button`);
  await link.or(button).first().waitFor();
  if (await link.isVisible()) await link.click();
  else if (!(await shown[label]().isVisible())) await button.click();
}

/** begin starts a conversation from the home page, with these settings. */
async function begin(more) {
  await settings(more);
  await page.goto("");
  await either("header-launch-button", "launch-new-conversation-button").click();
  await page.waitForURL(/\/conversations\/[\w-]+/);
  await ready();
}

/** ready waits until the front end takes messages. */
async function ready() {
  await page.waitForFunction(
    () => {
      const text = document.body.innerText;
      return /Agent is awaiting user input|Waiting for task|Awaiting user input/i.test(text);
    },
    undefined,
    { timeout: patience },
  );
}

async function tell(text) {
  await input().fill(text);
  await input().press("Enter");
}

/** terminal waits for a text in the terminal tab. */
async function terminal(text) {
  await tab("Terminal");
  await page.waitForFunction((want) => document.querySelector(".xterm-rows")?.textContent.replaceAll("\u00a0", " ").includes(want), text, {
    timeout: patience,
  });
}

const message = (role, text) => page.locator(`[data-testid="${role}-message"]`, { hasText: text }).first();

/** settings changes them beside the page. */
const settings = (more) =>
  call("admin", "POST", "/api/settings", {
    llm_model: "scripted/demo",
    user_consents_to_analytics: false,
    confirmation_mode: false,
    ...more,
  });

const events = async () => (await call("admin", "GET", `/api/conversations/${conversation()}/events?limit=100`)).events;

/** state waits until the conversation's agent is in a state. */
async function state(want) {
  for (const until = Date.now() + patience; ;) {
    const last = (await events()).filter((e) => e.observation === "agent_state_changed").at(-1)?.extras.agent_state;
    if (last === want) return;
    expect(Date.now() < until, `the agent is ${last}, want ${want}`);
    await page.waitForTimeout(100);
  }
}

/** held is a command that works until it is let go. */
const held = (says) =>
  `$ printf 'beg%s\\n' un-${says}; until [ -e go-${says} ]; do printf .; sleep 0.3; done; printf '\\nend%s\\n' ed-${says}`;

async function letGo(name) {
  const form = new FormData();
  form.append("files", new Blob(["go"]), `go-${name}`);
  const answer = await fetch(`${job.base}/api/conversations/${conversation()}/upload-files`, {
    method: "POST",
    headers: { "X-Session-API-Key": job.keys.admin },
    body: form,
  });
  expect(answer.ok, `upload: ${answer.status}`);
}

/** begun waits until the command that is held runs. */
async function begun(name) {
  for (const until = Date.now() + patience; ;) {
    const list = await call("admin", "GET", `/api/conversations/${conversation()}/events?limit=100`);
    if (list.events.some((e) => e.action === "run" && JSON.stringify(e).includes(`un-${name}`))) return;
    expect(Date.now() < until, "the command does not start");
    await page.waitForTimeout(100);
  }
}

/** stopHere stops the conversation: from the list in 0.53, at the status of the server in 0.59. */
async function stopHere() {
  const server = page.getByText("Running", { exact: true });
  if (await server.isVisible()) {
    // The page may still know the conversation as starting, until it looks again after 3 seconds: then a click does nothing.
    for (let tries = 0; tries < 10 && !(await id("stop-server-button").isVisible()); tries++) {
      await server.click();
      await page.waitForTimeout(500);
    }
    await id("stop-server-button").click();
    return;
  }
  await id("toggle-conversation-panel").click();
  const card = id("conversation-panel").locator('[data-testid="conversation-card"]').first();
  await card.hover();
  await card.locator('[data-testid="ellipsis-button"]').click();
  await page.locator('[data-testid="context-menu"] [data-testid="stop-button"]').click();
  await page.getByRole("button", { name: /^Confirm/ }).click();
}

let number = 0;
/** steps takes a picture of what each part ends with. */
const steps = (parts) =>
  Object.fromEntries(
    Object.entries(parts).map(([name, part]) => [
      name,
      async () => {
        number++;
        if (!there) await arrive();
        there.wrong.length = 0;
        try {
          await part();
          expect(there.wrong.length === 0, there.wrong.join("\n"));
        } finally {
          if (job.pictures)
            await page.screenshot({ path: join(job.pictures, `${String(number).padStart(2, "0")}-${name.replaceAll(/\W+/g, "-")}.png`) });
        }
      },
    ]),
  );

await play(
  steps({
    async "log in"() {
      expect(new URL(page.url()).hash === "", "the ticket is still in the address");
    },

    async settings() {
      await page.goto("settings");
      await id("llm-settings-screen").waitFor();
      await id("advanced-settings-switch").locator("xpath=ancestor-or-self::label").first().click();
      await id("llm-custom-model-input").fill("scripted/demo");
      await id("submit-button").click();
      await page.waitForFunction(() =>
        fetch("/api/settings")
          .then((r) => r.ok && r.json())
          .then((s) => s && s.llm_model === "scripted/demo"),
      );
      await id("confirm-preferences").click();
      await id("user-capture-consent-form").waitFor({ state: "detached" });
      await page.reload();
      await page.waitForFunction(() =>
        [...document.querySelectorAll("input")].some((field) => ["demo", "scripted/demo"].includes(field.value)),
      );
      const stored = await call("admin", "GET", "/api/settings");
      expect(stored.llm_model === "scripted/demo", `the model is ${stored.llm_model}`);
    },

    async "new conversation"() {
      await begin();
    },

    async "first message visible"() {
      await tell("Hello, deckhand");
      await message("user", "Hello, deckhand").waitFor();
      await page.locator('[data-testid="agent-message"]').first().waitFor();
      await state("awaiting_user_input");
      await ready();
      expect(await message("user", "Hello, deckhand").isVisible(), "the message disappeared");
      expect((await page.locator('[data-testid="user-message"]').count()) === 1, "the message is shown twice");
    },

    async "command with output"() {
      await tell("$ printf 'out%s\\n' put-1");
      await terminal("output-1");
      await page
        .getByText(/printf 'out%s/)
        .first()
        .waitFor();
      await state("awaiting_user_input");
    },

    async "typing in the terminal"() {
      await terminal("output-1");
      await page.locator(".xterm-screen").click();
      await page.keyboard.type("printf 'ty%s\\n' ped-1");
      await page.keyboard.press("Enter");
      await terminal("typed-1");
      const typed = (await events()).find((e) => e.action === "run" && e.source === "user");
      expect(typed?.args.command.includes("ped-1"), "the command is not recorded as the user's");
    },

    async approve() {
      await begin({ confirmation_mode: true });
      await tell("$ printf 'app%s\\n' roved-1");
      await id("action-confirm-button").click();
      await terminal("approved-1");
      await id("action-confirm-button").waitFor({ state: "detached" });
      await state("awaiting_user_input");
    },

    async reject() {
      await begin({ confirmation_mode: true });
      await tell("$ touch never-made; printf 'rej%s\\n' ected-1");
      await id("action-reject-button").click();
      await id("action-reject-button").waitFor({ state: "detached" });
      await state("awaiting_user_input");
      await settings();
      const list = await events();
      expect(!list.some((e) => e.observation === "run"), "it was run");
      await tell("$ ls -a; printf 'loo%s\\n' ked-1");
      await terminal("looked-1");
      const files = await call("admin", "GET", `/api/conversations/${conversation()}/list-files`);
      expect(!JSON.stringify(files).includes("never-made"), "it was done all the same");
    },

    async diff() {
      await begin();
      await tell(
        "$ git init -q . && git config user.name d && git config user.email d@example.org && " +
          "printf 'old line\\nsame line\\n' > changed.txt && git add . && git commit -qm first && " +
          "git init -q --bare /tmp/origin.git && git remote add origin /tmp/origin.git && git push -q origin HEAD && " +
          "printf 'new line\\nsame line\\n' > changed.txt && printf 'brand new\\n' > added.txt; printf 'wri%s\\n' tten-1",
      );
      await terminal("written-1");
      await state("awaiting_user_input");
      await page.reload(); // the front end reads the list when a command starts, and not when it ends
      await tab("Changes");
      const file = id("file-diff-viewer-outer").filter({ hasText: "changed.txt" });
      await file.locator('[data-testid="collapse"]').click();
      await page.waitForFunction(
        () => {
          const text = [...document.querySelectorAll(".monaco-diff-editor .view-line")].map((line) =>
            line.textContent.replaceAll("\u00a0", " "),
          );
          return text.includes("old line") && text.includes("new line");
        },
        undefined,
        { timeout: patience },
      );
    },

    async "app tab"() {
      await begin();
      const { hosts } = await call("admin", "GET", `/api/conversations/${conversation()}/web-hosts`);
      const port = Object.values(hosts)[0];
      expect(Object.keys(hosts).length === 2, `there are ${Object.keys(hosts).length} hosts, want 2`);
      await tell(`$ echo 'Ahoy from the app' > index.html; python3 -m http.server ${port} >/dev/null 2>&1 & printf 'ser%s\\n' ved-1`);
      await terminal("served-1");
      await page.reload(); // 0.53 looks once whether an application listens
      await tab("App");
      await page.frameLocator("iframe").getByText("Ahoy from the app").waitFor();
    },

    async pause() {
      await begin();
      await tell(held("pause"));
      await begun("pause");
      const button = page.locator('[data-testid="stop-button"]').first();
      await button.waitFor();
      const bar = page
        .locator("button:has(svg)")
        .filter({ has: page.locator("span.relative") })
        .first();
      if (await bar.isVisible()) {
        await bar.click(); // 0.53 has a button for it; it takes effect after the step
        await letGo("pause");
        await state("paused");
        await terminal("ended-pause");
        await bar.click();
        await state("awaiting_user_input");
      } else {
        await button.click(); // the button of 0.59 shows a pause, and asks for a stop of the agent
        await state("stopped");
        // The page looks every 30 seconds, and starts a conversation that it finds stopped: then there is no button.
        const started = state("awaiting_user_input");
        await Promise.race([id("play-button").waitFor(), started]);
        await terminal("begun-pause"); // what the command had written is kept
        if (await id("play-button").isVisible())
          await id("play-button")
            .click({ timeout: 5000 })
            .catch(() => {});
        await started;
      }
      await tell("$ printf 'on%s\\n' ward-1");
      await terminal("onward-1");
    },

    async stop() {
      await begin();
      await tell(held("stop"));
      await begun("stop");
      const at = page.url();
      await stopHere();
      await page.waitForURL((url) => url.pathname === "/");
      const stopped = await call(
        "admin",
        "GET",
        new URL(at).pathname.replace("/conversations", "/api/conversations").split("/").slice(0, 4).join("/"),
      );
      expect(stopped.status === "STOPPED", `the conversation is ${stopped.status}`);
      await page.goto(at.split("/").slice(0, 5).join("/"));
    },

    async resume() {
      await ready();
      await terminal("begun-stop"); // what the command had written is kept
      await tell("$ printf 'res%s\\n' umed-1");
      await terminal("resumed-1");
      await state("awaiting_user_input");
    },

    async "reload mid-turn"() {
      await begin();
      await tell(held("reload"));
      await begun("reload");
      await page.reload();
      await message("user", "un-reload").waitFor();
      await letGo("reload");
      await terminal("ended-reload");
      await state("awaiting_user_input");
      await ready();
      expect((await page.locator('[data-testid="user-message"]').count()) === 1, "the message is shown twice");
    },

    async "server killed mid-turn"() {
      await begin();
      await tell(held("kill"));
      await begun("kill");
      await tab("Terminal"); // whose script must be there before the server is not
      await page.locator(".xterm-screen").waitFor();
      await ask("kill");
      await ask("start");
      await letGo("kill");
      await terminal("ended-kill"); // the page goes on by itself
      await state("awaiting_user_input");
      await ready();
      await tell("$ printf 'go%s\\n' es-on-1");
      await terminal("goes-on-1");
      expect((await page.locator('[data-testid="user-message"]').count()) === 2, "a message is shown twice, or not at all");
    },
  }),
);
