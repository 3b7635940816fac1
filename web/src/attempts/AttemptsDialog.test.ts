// @vitest-environment jsdom
import { expect, it } from "vitest";

import { router } from "../lib/router.svelte";
import { click, leave, render, server, soon, the, type, words } from "../testing/page";
import Confirm from "../ui/Confirm.svelte";
import Results from "./Results.svelte";
import * as routes from "./routes";
import StartForm from "./StartForm.svelte";

it("opens the attempt that is kept", async () => {
  server.on("POST /api/conversations/c1/attempts/a2/keep", () => ({ sets: [] }));
  const attempt = (number: number) => ({
    conversation_id: `a${number}`,
    number,
    state: "started",
    model: "x/y",
    agent_state: "finished",
    status: "RUNNING",
    accumulated_cost: 0,
    seconds_worked: 3,
  });
  const set = { id: "s1", task: "Fix it", created_at: "2026-01-02T15:04:05Z", attempts: [attempt(1), attempt(2)] };
  let left = false;
  render(Confirm, {});
  render(Results, { id: "c1", sets: [set as routes.AttemptSet], onchange: () => {}, onnew: () => {}, onleave: () => (left = true) });
  expect(words()).not.toContain("$0.00"); // the price is unknown
  click(the("button", "Keep: Attempt 2"));
  await soon(() => expect(words()).toContain("Then the kept attempt opens."));
  click(the("button", "Keep"));
  await soon(() => expect(router.path).toBe("/conversations/a2"));
  expect(left).toBe(true);
});

it("remembers the test command for its repository only", async () => {
  const start = "POST /api/conversations/c1/attempts";
  server.on(start, () => ({ sets: [] }));
  const show = (repository: string) =>
    render(StartForm, {
      begin: (body) => routes.start("c1", body),
      model: "x/y",
      repository,
      task: "Fix it",
      back: () => {},
      onstarted: () => {},
    });
  const command = () => the("textbox", "Test command") as HTMLInputElement;
  show("octo/app");
  type(command(), "make check");
  click(the("button", "Start 2 attempts"));
  await soon(() => expect(server.to(start)).toHaveLength(1));
  for (const [repository, remembered] of [
    ["octo/app", "make check"],
    ["octo/lib", ""],
    ["", ""],
  ] as const) {
    await soon(() => {
      leave();
      show(repository);
      expect(command().value).toBe(remembered);
    });
  }
});
