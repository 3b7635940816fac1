// @vitest-environment jsdom
import { afterEach, expect, it, vi } from "vitest";

import { all, click, render, server, soon, the, words } from "../testing/page";
import { Live } from "./live.svelte";
import Ports from "./Ports.svelte";

afterEach(() => vi.useRealTimers());

it("keeps the button to try again until it is clicked", async () => {
  const path = "/api/conversations/c1";
  let broken = true;
  server.on(`GET ${path}/config`, () => ({ runtime_id: "r1" }));
  server.on(`GET ${path}/web-hosts`, () => ({ hosts: {} }));
  server.on(`GET ${path}/ports`, () => (broken ? Response.json({ error: "The disk is full." }, { status: 507 }) : []));
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  render(Ports, { live: new Live("c1") });
  await soon(() => expect(words()).toContain("The disk is full."));
  broken = false;
  const asked = server.sent.length;
  vi.advanceTimersByTime(20_000);
  expect(server.sent.length).toBe(asked);
  expect(all("button", "Try again")).toHaveLength(1);
  click(the("button", "Try again"));
  await soon(() => expect(words()).not.toContain("The disk is full."));
});
