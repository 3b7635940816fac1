// The installable app, its service worker, and notifications: as a person sets them up.
import { join } from "node:path";

import { begin, call, clean, enter, expect, job, play, settle } from "./stage.mjs";

const shot = (page, name) => job.pictures && page.screenshot({ path: join(job.pictures, `${name}.png`), fullPage: true });

// Each visit is a private window, in which Chromium has no push service.
const expected = [/Push API in incognito mode/];

/** open shows the section with notifications. */
async function open(there) {
  await there.context.grantPermissions(["notifications"]);
  await there.page.goto("settings/notifications");
  await there.page.getByRole("heading", { name: "Browser notifications" }).waitFor();
}

/** registered waits for the service worker. */
const registered = (page) => page.evaluate(async () => (await navigator.serviceWorker.ready).scope);

await play({
  "the app can be installed": async () => {
    const there = await enter("ada");
    const { page } = there;
    await page.goto("");
    const href = await page.evaluate(() => document.querySelector("link[rel=manifest]").href);
    const answer = await page.request.get(href);
    expect(answer.headers()["content-type"] === "application/manifest+json", `it is ${answer.headers()["content-type"]}`);
    const manifest = await answer.json();
    for (const icon of manifest.icons) {
      const sizes = await page.evaluate(async (src) => {
        const image = new Image();
        image.src = src;
        await image.decode();
        return `${image.naturalWidth}x${image.naturalHeight}`;
      }, new URL(icon.src, href).href);
      expect(sizes === icon.sizes, `${icon.src} is ${sizes}, not ${icon.sizes}`);
    }
    const wire = await page.context().newCDPSession(page);
    const { errors } = await wire.send("Page.getAppManifest");
    expect(errors.length === 0, JSON.stringify(errors));
    const { installabilityErrors } = await wire.send("Page.getInstallabilityErrors");
    const real = installabilityErrors.filter((e) => e.errorId !== "in-incognito");
    expect(real.length === 0, JSON.stringify(real));
    await clean(there);
  },

  "the service worker keeps nothing": async () => {
    await settle("ada");
    const there = await enter("ada", { expected });
    const { page } = there;
    await open(there);
    await page.getByRole("button", { name: "Enable" }).first().click();
    const scope = await registered(page);
    expect(scope === job.base + "/", scope);
    await page.reload();
    await page.getByRole("heading", { name: "Browser notifications" }).waitFor();
    const kept = await page.evaluate(async () => [await caches.keys(), performance.getEntriesByType("navigation")[0].workerStart]);
    expect(kept[0].length === 0 && kept[1] === 0, `caches ${kept[0]}, and pages come from the worker: ${kept[1]}`);
    await clean(there);
  },

  "a push is shown once": async () => {
    const there = await enter("ada", { expected });
    const { page, context } = there;
    await open(there);
    await page.getByRole("button", { name: "Enable" }).first().click();
    const scope = await registered(page);
    const wire = await context.newCDPSession(page);
    const found = new Promise((done) =>
      wire.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
        const mine = registrations.find((r) => r.scopeURL === scope && !r.isDeleted);
        if (mine) done(mine.registrationId);
      }),
    );
    await wire.send("ServiceWorker.enable");
    const registrationId = await found;
    const deliver = (event, body, tag = "c1") =>
      wire.send("ServiceWorker.deliverPushMessage", {
        origin: job.base,
        registrationId,
        data: JSON.stringify({ title: "Mend the fence", body, path: `conversations/${tag}`, tag, event }),
      });
    const shown = () =>
      page.evaluate(async () =>
        (await (await navigator.serviceWorker.ready).getNotifications()).map((n) => [n.title, n.body, n.tag, n.data.url, n.data.event]),
      );
    for (const [event, body] of [
      [7, "Needs approval"],
      [7, "Needs approval"],
      [9, "Done"],
    ]) {
      await deliver(event, body);
      await page.waitForFunction(
        async (n) => (await (await navigator.serviceWorker.ready).getNotifications()).some((s) => s.data.event === n),
        event,
      );
      const now = await shown();
      expect(now.length === 1 && now[0].join() === ["Mend the fence", body, "c1", job.base + "/conversations/c1", event].join(), `${now}`);
    }
    // A late notice does not replace a newer one. Notices are handled in order, so the next one proves that the late one was handled.
    await deliver(7, "Needs approval");
    await deliver(3, "Done", "c2");
    await page.waitForFunction(async () => (await (await navigator.serviceWorker.ready).getNotifications({ tag: "c2" })).length === 1);
    const late = (await shown()).filter(([, , tag]) => tag === "c1");
    expect(late.length === 1 && late[0][1] === "Done", `${late}`);
    await clean(there);
  },

  "a device, an address and quiet hours": async () => {
    await settle("bob", { email: "bob@example.org" });
    const there = await enter("bob");
    const { page } = there;
    // No push service can be reached from here: the browser's part of the subscription is given.
    await page.addInitScript((subscription) => {
      PushManager.prototype.subscribe = async () => ({ toJSON: () => subscription });
    }, job.subscription);
    await open(there);
    await shot(page, "notices-off");
    await page.getByRole("button", { name: "Enable" }).first().click();
    await page.getByText("On for this device, even when Deckhand is closed.").waitFor();
    await page.getByRole("button", { name: "Test" }).first().click();
    await page.getByText("Test notification sent.").waitFor();
    const pushed = await (await fetch(job.pushed)).text();
    expect(pushed === "Test notification", pushed);

    await page.getByRole("button", { name: "Verify address" }).click();
    await page.getByText("link sent, waiting for verification").waitFor();
    const link = await (await fetch(job.mailed)).text();
    await page.goto(link);
    await page.getByText("E-mail address verified.").waitFor();
    expect(!page.url().includes("#"), page.url());
    await page.getByRole("switch", { name: "Send notifications by e-mail" }).click();
    await page.getByRole("switch", { name: "Use quiet hours" }).click();
    await page.getByLabel("From").fill("21:30");
    await page.getByLabel("From").press("Tab");
    await page.waitForFunction(async () => (await (await fetch("api/notifications")).json()).quiet_hours?.start === "21:30");
    await page.getByRole("switch", { name: "Task finished" }).click();
    await page.waitForFunction(async () => (await (await fetch("api/notifications")).json()).events.length === 3);
    const now = await call("bob", "GET", "/api/notifications");
    expect(
      now.email.enabled && now.email.verified && !now.events.includes("finished") && now.push.devices.length === 1,
      JSON.stringify(now),
    );
    for (const [width, theme] of job.pictures ? [1280, 390].flatMap((w) => ["light", "dark"].map((c) => [w, c])) : []) {
      await page.setViewportSize({ width, height: 800 });
      await page.evaluate((name) => (document.documentElement.dataset.theme = name), theme);
      await shot(page, `notices-${width}-${theme}`);
    }
    if (job.pictures) {
      for (const language of ["de", "es", "fr", "ja", "pt", "zh-CN"]) {
        await settle("bob", { language });
        await page.setViewportSize({ width: 390, height: 800 });
        await page.reload();
        await page.locator("section").nth(3).waitFor();
        await shot(page, `notices-${language}`);
      }
    }
    await clean(there);
  },

  "a conversation is muted in its menu": async () => {
    await settle("cleo");
    const id = await begin("cleo", "hello");
    const there = await enter("cleo");
    const { page } = there;
    await page.goto(`conversations/${id}`);
    for (const [item, said] of [
      ["Mute notifications", "Notifications muted for this conversation."],
      ["Unmute notifications", "Notifications on for this conversation."],
    ]) {
      await page.getByRole("button", { name: "Conversation menu" }).click();
      await page.getByRole("menuitem", { name: item, exact: true }).click();
      await page.getByText(said).waitFor();
    }
    await clean(there);
  },

  "logging out unsubscribes the browser": async () => {
    const there = await enter("bob");
    const { page } = there;
    await page.addInitScript((subscription) => {
      PushManager.prototype.subscribe = async () => ({ toJSON: () => subscription });
    }, job.subscription);
    await settle("bob", { language: "en" });
    await open(there);
    await page.getByRole("button", { name: "Enable" }).first().click();
    await page.getByText("On for this device, even when Deckhand is closed.").waitFor();
    await page.goto("settings/account");
    await page.getByRole("main").getByRole("button", { name: "Log out" }).click();
    await page.getByRole("heading", { name: "Log in" }).waitFor();
    const left = (await call("bob", "GET", "/api/notifications")).push.devices;
    expect(left.length === 0, JSON.stringify(left));
    await there.end();
  },
});
