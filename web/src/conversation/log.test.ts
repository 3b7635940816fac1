import { describe, expect, test } from "vitest";

import type { Display, Event, EventOf } from "../lib/events";
import { displays } from "../testing/displays";
import { Log } from "./log.svelte";

const at = "2026-01-02T15:04:05.000000Z";

const event = <K extends Event["kind"]>(id: number, kind: K, payload: EventOf<K>["payload"], time = at) =>
  ({ id, kind, time, payload }) as Event;
const said = (id: number, text: string) => event(id, "user_said", { text });
const answered = (id: number, text: string, totals = {}) => event(id, "model_answered", { call: `c${id}`, text, usage: {}, totals });
const called = (id: number, display: Display, args: object, more = {}) =>
  event(id, "tool_called", {
    id: `call_${id}`,
    name: `my_${display.content}`,
    args,
    risk: -1,
    answer: 0,
    totals: {},
    display,
    ...more,
  });
const returned = (id: number, cause: number, display: Display, more = {}) =>
  event(id, "tool_returned", { id: `call_${cause}`, name: `my_${display.content}`, display, cause, outcome: "ok", ...more });
const run = (id: number, command: string, more = {}) => called(id, displays.command, { command }, more);
const ran = (id: number, cause: number, output: string) => returned(id, cause, displays.command, { output, details: { exit_code: 0 } });
const ended = (id: number, state: EventOf<"turn_ended">["payload"]["state"], reason = "") =>
  event(id, "turn_ended", { up_to: 0, state, reason });
const began = (id: number) => event(id, "turn_began", {});
const paused = (id: number) => event(id, "paused", {});
const stopped = (id: number) => event(id, "stopped", {});
const asked = (id: number) => event(id, "state_changed", { state: "awaiting_user_confirmation" });
const allowed = (id: number, time = at) => event(id, "approval_given", { id: "call_2", approved: true }, time);
const limited = (id: number) => event(id, "state_changed", { state: "rate_limited" });

const model = (id: number, upTo: number) => event(id, "model_asked", { call: `m${id}`, model: "x", up_to: upTo });
const withdrawn = (id: number, ...messages: number[]) => event(id, "withdrawn", { messages });

const names = (log: Log) => log.items.map((i) => `${i.kind}:${i.name}:${i.id}`);

/** order are the items by their events. */
const order = (log: Log) => log.items.map((i) => i.id);

describe("a message that was sent during a turn", () => {
  const turn = [said(1, "go"), began(2), model(3, 1), said(4, "also"), answered(5, "first"), model(6, 5), answered(7, "second")];

  test("stands where the agent read it", () => {
    const log = new Log();
    for (const e of turn.slice(0, 5)) log.append(e);
    expect(log.items.map((i) => [i.id, i.unread])).toEqual([
      [1, false],
      [4, true],
      [5, false],
    ]);
    for (const e of turn.slice(5)) log.append(e);
    expect(order(log)).toEqual([1, 5, 4, 7]);
    expect(log.items.map((i) => i.joined)).toEqual([false, false, true, false]);
  });

  test.each([2, 3, 4, 5, 6])("stands there too if pages are cut behind event %d", (at) => {
    const log = new Log();
    log.prepend(turn.slice(at).toReversed());
    log.prepend(turn.slice(0, at).toReversed());
    expect(order(log)).toEqual([1, 5, 4, 7]);
  });

  test("stands at the end of a turn that did not read it", () => {
    const log = new Log();
    log.prepend([...turn.slice(0, 5), ended(6, "error", "no"), began(7), model(8, 6), answered(9, "yes")].toReversed());
    expect(order(log)).toEqual([1, 5, 4, 6, 9]);
  });

  test("is not read by a call for a title", () => {
    const log = new Log();
    for (const e of turn.slice(0, 5)) log.append(e);
    log.append(event(6, "model_asked", { call: "t", model: "x", up_to: 5, purpose: "title" }));
    expect(log.items.map((i) => i.unread)).toContain(true);
  });

  test("is gone if it was withdrawn on a newer page", () => {
    const log = new Log();
    log.prepend([withdrawn(5, 4), said(6, "edited"), model(7, 6), answered(8, "ok")].toReversed());
    log.prepend(turn.slice(0, 4).toReversed());
    expect(log.items.map((i) => i.text)).toEqual(["go", "edited", "ok"]);
  });

  test("is there once after older items were dropped and read again", () => {
    const log = new Log();
    log.prepend(turn.toReversed());
    log.dropOldest(1);
    expect(order(log)).toEqual([5, 4, 7]);
    log.dropOldest(1);
    expect(order(log)).toEqual([7]);
    log.prepend(turn.slice(0, 6).toReversed());
    expect(order(log)).toEqual([1, 5, 4, 7]);
  });
});

describe("the log", () => {
  test("joins a call and its result", () => {
    const log = new Log();
    log.prepend([ran(4, 2, "late"), ran(3, 1, "early"), run(2, "make"), run(1, "ls")]);
    expect(log.items.map((i) => [i.id, i.result?.output])).toEqual([
      [1, "early"],
      [2, "late"],
    ]);
  });

  test("keeps a result until the page with its call is read", () => {
    const log = new Log();
    log.prepend([answered(6, "done"), ran(5, 4, "out")]);
    expect(names(log)).toEqual(["agent:message:6"]);
    log.prepend([run(4, "ls"), said(3, "go")]);
    expect(names(log)).toEqual(["user:message:3", "tool:my_command:4", "agent:message:6"]);
    expect(log.items[1]!.result?.output).toBe("out");
    expect([log.oldest, log.newest]).toEqual([3, 6]);
  });

  test("shows a result that answers no call by itself", () => {
    const log = new Log();
    log.append(event(2, "set_up", { script: "setup.sh", exit: 3, output: "set up" }));
    expect(names(log)).toEqual(["tool:command:2"]);
    expect(log.items[0]!.result).toMatchObject({ ran: ". ./setup.sh", exit: 3, output: "set up", failed: false });
  });

  test("changes nothing for what came twice", () => {
    const log = new Log();
    log.prepend([said(1, "hi")]);
    log.append(said(1, "hi"));
    log.append(answered(2, "hello"));
    log.append(answered(2, "hello"));
    log.prepend([said(1, "hi")]);
    expect(names(log)).toEqual(["user:message:1", "agent:message:2"]);
  });

  test("keeps output that came before its call", () => {
    const log = new Log();
    log.addDelta({ call: "call_2", offset: 0, text: "one\n" });
    log.append(run(2, "make"));
    log.addDelta({ call: "call_2", offset: 4, text: "two\n" });
    expect(log.items).toHaveLength(1);
    expect(log.items[0]).toMatchObject({ kind: "tool", liveOutput: "one\ntwo\n" });
  });

  test("takes output for none of the agent's words when its call is on a page", () => {
    const log = new Log();
    log.addDelta({ call: "call_2", offset: 0, text: "one\n" });
    log.prepend([run(2, "make"), said(1, "go")]);
    log.addDelta({ call: "call_2", offset: 4, text: "two\n" });
    expect(names(log)).toEqual(["user:message:1", "tool:my_command:2"]);
    expect(log.items[1]).toMatchObject({ liveOutput: "one\ntwo\n" });
  });

  test("takes output that comes after its result for nothing", () => {
    const log = new Log();
    log.addDelta({ call: "call_1", offset: 0, text: "out" });
    log.prepend([ran(2, 1, "out"), run(1, "ls")]);
    log.addDelta({ call: "call_1", offset: 3, text: "late" });
    log.append(stopped(3));
    expect(names(log)).toEqual(["tool:my_command:1", "notice:state.stopped:3"]);
  });

  test("lets an answer be written in place, and keeps its key", () => {
    const log = new Log();
    log.addDelta({ call: "c1", offset: 0, text: "Grüß" });
    log.addDelta({ call: "c1", offset: 6, text: " Gott" });
    expect(log.items[0]).toMatchObject({ text: "Grüß Gott", streaming: true });
    const key = log.items[0]!.key;
    log.append(said(3, "wait"));
    expect(log.items.map((i) => i.kind)).toEqual(["user", "agent"]); // what is being written stays last
    log.append(answered(4, "Grüß Gott!"));
    expect(log.items.at(-1)).toMatchObject({ key, id: 4, text: "Grüß Gott!", streaming: false });
    expect(log.items).toHaveLength(2);
  });

  test("drops words that became the thought of a call, or nothing", () => {
    const log = new Log();
    log.addDelta({ call: "c1", offset: 0, text: "Let me look." });
    log.append(run(2, "ls"));
    expect(names(log)).toEqual(["tool:my_command:2"]);
    log.addDelta({ call: "c2", offset: 0, text: "Hm" });
    log.append(limited(3));
    expect(names(log)).toEqual(["tool:my_command:2", "notice:retry:3"]);
  });

  test("tells the instructions of the conversation", () => {
    const log = new Log();
    log.append(
      event(1, "recalled", {
        of: 1,
        text: "",
        details: { conversation_instructions: "Be brief." },
        items: [{ name: "knots" }, { name: "sails" }],
      }),
    );
    expect(log.items.map((i) => [i.name, i.text])).toEqual([
      ["instructions", "Be brief."],
      ["recall", "knots, sails"],
    ]);
  });

  test("leaves words that were cut off, and tells them from an answer", () => {
    const log = new Log();
    log.append(began(1));
    log.addDelta({ call: "c1", offset: 0, text: "I was about to" });
    log.append(paused(2));
    expect(names(log)).toEqual(["agent:message:2", "notice:state.paused:2"]);
    expect([log.items[0]!.cutOff, log.items[0]!.streaming]).toEqual([true, false]);
    log.addDelta({ call: "c2", offset: 0, text: "Anew" });
    expect(log.items.map((i) => i.text)).toEqual(["I was about to", "", "Anew"]);
  });

  test("shows the output of a command while it runs", () => {
    const log = new Log();
    log.append(run(2, "make"));
    log.addDelta({ call: "call_2", offset: 0, text: "one\n" });
    log.addDelta({ call: "call_2", offset: 9, text: "lost" }); // something before it is missing
    log.addDelta({ call: "call_2", offset: 4, text: "two\n" });
    expect(log.items[0]!.liveOutput).toBe("one\ntwo\n");
    log.append(ran(3, 2, "one\ntwo\nthree\n"));
    expect(log.items[0]).toMatchObject({ liveOutput: "" });
    expect(log.items[0]!.result?.output).toContain("three");
  });

  test("knows which call asks, and when it began", () => {
    const log = new Log();
    log.append(run(2, "rm", { awaits: true }));
    log.append(asked(3));
    expect(log.items[0]!.awaitsApproval).toBe(true);
    log.append(allowed(4, "2026-01-02T15:04:15.000000Z"));
    expect(log.items[0]).toMatchObject({ awaitsApproval: false, startedAt: Date.parse("2026-01-02T15:04:15Z") });
  });

  test("knows the newest state, tasks and metrics, in whatever order pages come", () => {
    const log = new Log();
    const plan = (id: number, title: string) =>
      called(id, displays.checklist, { command: "plan", task_list: [{ id: "1", title, status: "todo" }] });
    const think = (id: number, cost: number) =>
      called(id, displays.thought, { thought: "Hm." }, { totals: { cost }, usage: { input: 30, output: 2, window: 100 } });
    log.prepend([ended(9, "finished"), plan(8, "new"), think(7, 2e9)]);
    log.prepend([ended(3, "error", "no key"), plan(2, "old"), think(1, 1e9)]);
    expect(log.status.state).toBe("finished");
    expect(log.status.tasks?.[0]?.title).toBe("new");
    expect(log.status.usage).toEqual({ dollars: 2, tokens: 32, window: 100 });
    expect(log.items.filter((i) => i.name === "state.error").map((i) => i.text)).toEqual(["no key"]);
  });

  test("tells what is true now from what happened", () => {
    const log = new Log();
    log.append(event(1, "workspace_step", { step: "starting" }));
    expect(log.status.starting).toBe("starting");
    log.append(event(2, "workspace_ready", {}));
    log.append(event(3, "titled", { title: "A name" }));
    log.append(event(4, "noted", { id: "STATUS$ERROR", message: "bad", error: true }));
    expect(log.status).toMatchObject({ starting: "", title: "A name" });
    expect(log.newest).toBe(4);
    expect(names(log)).toEqual(["notice:failure:4"]);
  });

  test("knows that a pause waits for the step in progress", () => {
    const log = new Log();
    log.append(began(1));
    log.append(event(2, "pause_requested", {}));
    expect(log.status.pausing).toBe(true);
    expect(names(log)).toEqual([]);
    log.append(paused(3));
    expect(log.status.pausing).toBe(false);
  });

  test("forgets the oldest and can read them again", () => {
    const log = new Log();
    for (const e of [run(1, "a"), said(2, "b"), ran(3, 1, "out"), answered(4, "c")]) log.append(e);
    log.dropOldest(1);
    expect([names(log), log.oldest]).toEqual([["user:message:2", "agent:message:4"], 2]);
    log.prepend([run(1, "a")]);
    expect(log.items[0]!.result?.output).toBe("out");
  });

  test("keeps no page trees or whole files", () => {
    const log = new Log();
    log.append(called(1, displays.create, { command: "create", path: "a" }));
    log.append(returned(2, 1, displays.create, { details: { diff: "@@", old_content: "o", new_content: "n", dom_object: {} } }));
    expect(log.items[0]!.result?.details).toEqual({ diff: "@@" });
  });

  test("tells notices where they happened, and what is over not at all", () => {
    const log = new Log();
    const steps = [event(7, "workspace_ready", {}), event(6, "titled", { title: "A title" }), event(3, "pause_requested", {})];
    log.prepend([
      answered(9, "done"),
      event(8, "egress_set", { mode: "off" }),
      ...steps.slice(0, 2),
      event(5, "noted", { id: "X", message: "no answer", error: true }),
      said(4, "go"),
      steps[2]!,
    ]);
    expect(names(log)).toEqual(["user:message:4", "notice:failure:5", "notice:egress_set:8", "agent:message:9"]);
    expect(log.items[1]!.at).toBe(Date.parse(at));
    expect(log.status).toMatchObject({ title: undefined, pausing: false });
    log.append(event(8, "egress_set", { mode: "off" }));
    expect(log.items).toHaveLength(4);
  });

  test("still asks when an older page tells of older states", () => {
    const log = new Log();
    log.prepend([asked(21), run(20, "rm x", { awaits: true })]);
    log.prepend([began(11), said(10, "go")]);
    expect(log.items.at(-1)!.awaitsApproval).toBe(true);
    log.append(allowed(22));
    expect(log.items.at(-1)!.awaitsApproval).toBe(false);
  });

  test("shows an imported event as what it stands for", () => {
    const log = new Log();
    const imported = (id: number, ...as: Event[]) => event(id, "imported", { as });
    log.prepend([
      imported(5, called(5, displays.message, { message: "Done." }), returned(5, 0, displays.message, { ends: true })),
      imported(4),
      imported(3, returned(3, 2, displays.command, { output: "a.txt" })),
      imported(
        2,
        event(2, "model_answered", { call: "", text: "Look.", tool_calls: [{ id: "", name: "my_command" }], usage: {}, totals: {} }),
        run(2, "ls", { thought: "Look." }),
      ),
      imported(1, said(1, "hi")),
    ]);
    expect(names(log)).toEqual(["user:message:1", "tool:my_command:2", "tool:my_message:5"]);
    expect([log.items[1]!.text, log.items[1]!.result?.output, log.items[2]!.result]).toEqual(["Look.", "a.txt", undefined]);
  });

  test("passes over answers that are no words for the person", () => {
    const log = new Log();
    log.append(event(1, "model_answered", { call: "c", text: "A title", purpose: "title", usage: {}, totals: { cost: 9 } }));
    log.append(event(2, "model_answered", { call: "d", tool_calls: [{ id: "x", name: "my_thought" }], usage: {}, totals: {} }));
    log.append(called(3, displays.hidden, {}));
    log.append(event(4, "model_failed", { call: "e", class: "owner_lost", totals: {} }));
    expect([names(log), log.status.usage]).toEqual([[], undefined]);
  });

  test("shows what an answer had said when it was interrupted, and why a call of the model failed", () => {
    const log = new Log();
    log.addDelta({ call: "c", offset: 0, text: "I was" });
    log.append(
      event(1, "model_failed", { call: "c", class: "cancelled", message: "Interrupted by pause.", text: "I was about", totals: {} }),
    );
    log.append(event(2, "model_failed", { call: "d", class: "rate", message: "Slow down", retried: true, totals: {} }));
    log.append(event(3, "model_failed", { call: "e", class: "auth", message: "No key", totals: {} }));
    expect(log.items.map((i) => [i.name, i.text])).toEqual([
      ["message", "I was about\n\n[Interrupted by pause]"],
      ["retry", "Slow down"],
      ["failure", "No key"],
    ]);
  });
});

describe("a model call that is retried", () => {
  const failed = (id: number, retried = true) =>
    event(id, "model_failed", { call: `m${id}`, class: "rate", message: "Slow down", retried, totals: {} });
  const noted = (id: number, retry: number) =>
    event(id, "noted", {
      id: "STATUS$LLM_RETRY",
      message: `Retrying LLM request, ${retry} / 4, in 2s: Slow down`,
      retry,
      retries: 4,
      retry_at: "2026-01-02T15:04:15Z",
    });
  const running = (id: number) => event(id, "state_changed", { state: "running" });
  /** The events of one failure: the failed call, the notice, the state, then the next call. */
  const again = (from: number, retry: number) => [
    failed(from),
    noted(from + 1, retry),
    limited(from + 2),
    running(from + 3),
    model(from + 4, 1),
  ];
  const cards = (log: Log) =>
    log.items.filter((i) => i.kind === "notice").map((i) => [i.name, i.text, i.retry?.phase, i.retry?.n, i.retry?.of]);

  test("is one card, which ends when the call succeeds", () => {
    const log = new Log();
    for (const e of [said(1, "go"), began(2), model(3, 1), failed(4), noted(5, 1), limited(6)]) log.append(e);
    expect(cards(log)).toEqual([["retry", "Slow down", "waits", 1, 4]]);
    expect(log.items.at(-1)!.retry!.at).toBe(Date.parse("2026-01-02T15:04:15Z"));
    for (const e of [running(7), model(8, 1)]) log.append(e);
    expect(cards(log)).toEqual([["retry", "Slow down", "runs", 1, 4]]);
    for (const e of [...again(9, 2), said(14, "and?"), ...again(15, 3)]) log.append(e);
    expect(cards(log)).toEqual([["retry", "Slow down", "runs", 3, 4]]);
    log.append(answered(20, "Here."));
    expect(cards(log)).toEqual([["retry", "Slow down", "succeeded", 3, 4]]);
    for (const e of [model(21, 1), failed(22)]) log.append(e);
    expect(cards(log).map((c) => c[2])).toEqual(["succeeded", "waits"]);
  });

  test("becomes the card of the failure, with its retries", () => {
    const log = new Log();
    for (const e of [began(2), model(3, 1), ...again(4, 1), ...again(9, 2), failed(14, false), ended(15, "rate_limited", "Rate limited.")])
      log.append(e);
    expect(cards(log)).toEqual([["state.rate_limited", "Rate limited.", "ended", 2, 2]]);
  });

  test.each([4, 5, 6, 7, 8, 9, 10, 11, 12])("is one card too if pages are cut behind event %d", (at) => {
    const all = [began(2), model(3, 1), ...again(4, 1), ...again(9, 2), answered(14, "Here.")];
    const log = new Log();
    log.prepend(all.filter((e) => e.id > at).toReversed());
    log.prepend(all.filter((e) => e.id <= at).toReversed());
    expect(cards(log)).toHaveLength(1);
    expect(cards(log)[0]![2]).toBe("succeeded");
  });

  test.each([
    ["before the first retry", [failed(4), noted(5, 1)], 0],
    ["during the first retry", again(4, 1), 1],
    ["before the second retry", [...again(4, 1), failed(9), noted(10, 2)], 1],
    ["after the first retry failed", [...again(4, 1), failed(9)], 1],
  ])("that is stopped %s counts the retries that began", (_, events, n) => {
    const log = new Log();
    for (const e of [began(2), model(3, 1), ...events, stopped(20)]) log.append(e);
    expect(cards(log)[0]!.slice(2, 4)).toEqual(["ended", n]);
  });

  test("and broke off while it was written leaves one card, as after a reload", () => {
    const all = [said(1, "go"), began(2), model(3, 1), failed(4), noted(5, 1), limited(6), running(7), model(8, 1)];
    const rest = [failed(9, false), ended(10, "error", "Slow down")];
    const log = new Log();
    for (const e of all.slice(0, 3)) log.append(e);
    log.addDelta({ call: "m3", offset: 0, text: "I was" });
    for (const e of all.slice(3, 6)) log.append(e);
    expect(names(log)).toEqual(["user:message:1", "notice:retry:4"]);
    for (const e of all.slice(6)) log.append(e);
    log.addDelta({ call: "m8", offset: 0, text: "I was" });
    for (const e of rest) log.append(e);
    const reloaded = new Log();
    reloaded.prepend([...all, ...rest].toReversed());
    expect(names(log)).toEqual(["user:message:1", "notice:state.error:10"]);
    expect(names(log)).toEqual(names(reloaded));
  });

  test("is told by the numbers in the message of older logs", () => {
    const log = new Log();
    log.append(event(1, "noted", { id: "STATUS$LLM_RETRY", message: "Retrying LLM request, 2 / 4, in 2s: No: never" }));
    expect(cards(log)).toEqual([["retry", "No: never", "waits", 2, 4]]);
  });

  test("is one card with the notice that another model continues", () => {
    const log = new Log();
    for (const e of [model(3, 1), failed(4), event(5, "noted", { id: "STATUS$LLM_FALLBACK", message: "a failed. b continues." })])
      log.append(e);
    expect(cards(log).map((c) => c[0])).toEqual(["note"]);
  });

  test("for a title or a summary has no card", () => {
    const log = new Log();
    log.append(event(1, "model_asked", { call: "t", model: "x", up_to: 0, purpose: "title" }));
    log.append(event(2, "model_failed", { call: "t", class: "rate", message: "Slow down", totals: {} }));
    expect(log.items).toEqual([]);
  });
});

describe("the notice that the history is being compacted", () => {
  const ask = (id: number) => event(id, "compact_asked", { instructions: "" });
  const condensed = (id: number) => event(id, "condensed", { summary: "Much." } as EventOf<"condensed">["payload"]);

  test.each([
    ["a summary", condensed(3), ["notice:condensed:3"]],
    ["a failure", event(3, "noted", { id: "STATUS$COMPACT_FAILED", message: "no", error: true }), ["notice:failure:3"]],
    ["a stop", stopped(3), ["notice:state.stopped:3"]],
  ])("ends with %s", (_, end, left) => {
    const log = new Log();
    log.append(ask(2));
    expect(names(log)).toEqual(["notice:compact_asked:2"]);
    log.append(end);
    expect(names(log)).toEqual(left);
    const paged = new Log();
    paged.prepend([end]);
    paged.prepend([ask(2)]);
    expect(names(paged)).toEqual(left);
  });
});
