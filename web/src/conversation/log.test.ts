import { describe, expect, test } from "vitest";

import type { Event } from "./events";
import { Log } from "./log.svelte";

const at = "2026-01-02T15:04:05.000000Z";

const event = (id: number, more: Partial<Event>): Event => ({ id, timestamp: at, source: "agent", ...more });
const said = (id: number, source: "user" | "agent", content: string) => event(id, { source, action: "message", args: { content } });
const run = (id: number, command: string) => event(id, { action: "run", args: { command, thought: "" }, tool_call_metadata: { tool_call_id: `call_${id}` } });
const ran = (id: number, cause: number, content: string) => event(id, { cause, observation: "run", content, extras: { metadata: { exit_code: 0 } } });
const state = (id: number, agent_state: string, reason = "") => event(id, { source: "environment", observation: "agent_state_changed", extras: { agent_state, reason } });

const names = (log: Log) => log.items.map((i) => `${i.kind}:${i.name}:${i.id}`);

describe("the log", () => {
  test("joins a call and its result", () => {
    const log = new Log();
    log.before([ran(4, 2, "late"), ran(3, 1, "early"), run(2, "make"), run(1, "ls")]);
    expect(log.items.map((i) => [i.id, i.result?.content])).toEqual([[1, "early"], [2, "late"]]);
  });

  test("keeps a result until the page with its call is read", () => {
    const log = new Log();
    log.before([said(6, "agent", "done"), ran(5, 4, "out")]);
    expect(names(log)).toEqual(["agent:message:6"]);
    log.before([run(4, "ls"), said(3, "user", "go")]);
    expect(names(log)).toEqual(["user:message:3", "tool:run:4", "agent:message:6"]);
    expect(log.items[1]!.result?.content).toBe("out");
    expect([log.oldest, log.newest]).toEqual([3, 6]);
  });

  test("shows a result that answers no call by itself", () => {
    const log = new Log();
    log.add(event(2, { source: "environment", observation: "run", content: "set up", extras: { command: ". ./setup.sh" } }));
    expect(names(log)).toEqual(["tool:run:2"]);
  });

  test("changes nothing for what came twice", () => {
    const log = new Log();
    log.before([said(1, "user", "hi")]);
    log.add(said(1, "user", "hi"));
    log.add(said(2, "agent", "hello"));
    log.add(said(2, "agent", "hello"));
    log.before([said(1, "user", "hi")]);
    expect(names(log)).toEqual(["user:message:1", "agent:message:2"]);
  });

  test("keeps output that came before its call", () => {
    const log = new Log();
    log.delta({ call: "call_2", offset: 0, text: "one\n" });
    log.add(run(2, "make"));
    log.delta({ call: "call_2", offset: 4, text: "two\n" });
    expect(log.items).toHaveLength(1);
    expect(log.items[0]).toMatchObject({ kind: "tool", live: "one\ntwo\n" });
  });

  test("takes output for none of the agent's words when its call is on a page", () => {
    const log = new Log();
    log.delta({ call: "call_2", offset: 0, text: "one\n" });
    log.before([run(2, "make"), said(1, "user", "go")]);
    log.delta({ call: "call_2", offset: 4, text: "two\n" });
    expect(names(log)).toEqual(["user:message:1", "tool:run:2"]);
    expect(log.items[1]).toMatchObject({ live: "one\ntwo\n" });
  });

  test("takes output that comes after its result for nothing", () => {
    const log = new Log();
    log.delta({ call: "call_1", offset: 0, text: "out" });
    log.before([ran(2, 1, "out"), run(1, "ls")]);
    log.delta({ call: "call_1", offset: 3, text: "late" });
    log.add(state(3, "stopped"));
    expect(names(log)).toEqual(["tool:run:1", "notice:state.stopped:3"]);
  });

  test("lets an answer be written in place, and keeps its key", () => {
    const log = new Log();
    log.delta({ call: "c1", offset: 0, text: "Grüß" });
    log.delta({ call: "c1", offset: 6, text: " Gott" });
    expect(log.items[0]).toMatchObject({ text: "Grüß Gott", streaming: true });
    const key = log.items[0]!.key;
    log.add(said(3, "user", "wait"));
    expect(log.items.map((i) => i.kind)).toEqual(["user", "agent"]); // what is being written stays last
    log.add(said(4, "agent", "Grüß Gott!"));
    expect(log.items.at(-1)).toMatchObject({ key, id: 4, text: "Grüß Gott!", streaming: false });
    expect(log.items).toHaveLength(2);
  });

  test("drops words that became the thought of a call, or nothing", () => {
    const log = new Log();
    log.delta({ call: "c1", offset: 0, text: "Let me look." });
    log.add(run(2, "ls"));
    expect(names(log)).toEqual(["tool:run:2"]);
    log.delta({ call: "c2", offset: 0, text: "Hm" });
    log.add(state(3, "rate_limited"));
    expect(names(log)).toEqual(["tool:run:2", "notice:state.rate_limited:3"]);
  });

  test("tells the instructions of the conversation", () => {
    const log = new Log();
    log.add({ id: 1, timestamp: "2026-01-01T00:00:00Z", source: "agent", observation: "recall", content: "", extras: { conversation_instructions: "Be brief." } } as never);
    expect([names(log), log.items[0]!.text]).toEqual([["notice:instructions:1"], "Be brief."]);
  });

  test("leaves words that were cut off, and tells them from an answer", () => {
    const log = new Log();
    log.add(state(1, "running"));
    log.delta({ call: "c1", offset: 0, text: "I was about to" });
    log.add(state(2, "paused"));
    expect(names(log)).toEqual(["agent:message:2", "notice:state.paused:2"]);
    expect([log.items[0]!.cut, log.items[0]!.streaming]).toEqual([true, false]);
    log.delta({ call: "c2", offset: 0, text: "Anew" });
    expect(log.items.map((i) => i.text)).toEqual(["I was about to", "", "Anew"]);
  });

  test("shows the output of a command while it runs", () => {
    const log = new Log();
    log.add(run(2, "make"));
    log.delta({ call: "call_2", offset: 0, text: "one\n" });
    log.delta({ call: "call_2", offset: 9, text: "lost" }); // something before it is missing
    log.delta({ call: "call_2", offset: 4, text: "two\n" });
    expect(log.items[0]!.live).toBe("one\ntwo\n");
    log.add(ran(3, 2, "one\ntwo\nthree\n"));
    expect(log.items[0]).toMatchObject({ live: "" });
    expect(log.items[0]!.result?.content).toContain("three");
  });

  test("knows which call asks, and when it began", () => {
    const log = new Log();
    const call = run(2, "rm");
    call.args!.confirmation_state = "awaiting_confirmation";
    log.add(call);
    log.add(state(3, "awaiting_user_confirmation"));
    expect(log.items[0]!.asks).toBe(true);
    log.add({ ...state(4, "user_confirmed"), timestamp: "2026-01-02T15:04:15.000000Z" });
    expect(log.items[0]).toMatchObject({ asks: false, begun: Date.parse("2026-01-02T15:04:15Z") });
  });

  test("knows the newest state, tasks and metrics, in whatever order pages come", () => {
    const log = new Log();
    const plan = (id: number, title: string) => event(id, { action: "task_tracking", args: { task_list: [{ id: "1", title, status: "todo" }] } });
    log.before([state(9, "finished"), plan(8, "new"), event(7, { action: "think", args: {}, llm_metrics: { accumulated_cost: 2 } })]);
    log.before([state(3, "error", "no key"), plan(2, "old"), event(1, { action: "think", args: {}, llm_metrics: { accumulated_cost: 1 } })]);
    expect(log.state).toBe("finished");
    expect(log.tasks?.[0]?.title).toBe("new");
    expect(log.metrics?.accumulated_cost).toBe(2);
    expect(log.items.filter((i) => i.name === "state.error").map((i) => i.text)).toEqual(["no key"]);
  });

  test("tells statuses apart", () => {
    const log = new Log();
    log.status({ id: "STATUS$STARTING_RUNTIME" }, 1);
    expect(log.starting).toBe("STATUS$STARTING_RUNTIME");
    log.status({ id: "STATUS$READY" }, 2);
    log.status({ conversation_title: "A name" }, 3);
    log.status({ type: "error", id: "STATUS$ERROR", message: "bad" }, 4);
    expect(log).toMatchObject({ starting: "", title: "A name", newest: 4 });
    expect(names(log)).toEqual(["notice:failure:4"]);
  });

  test("knows that a pause waits for the step in progress", () => {
    const log = new Log();
    log.add(state(1, "running"));
    log.status({ id: "STATUS$PAUSING", message: "Pausing after this step." }, 2);
    expect(log.pausing).toBe(true);
    expect(names(log)).toEqual([]);
    log.add(state(3, "paused"));
    expect(log.pausing).toBe(false);
  });

  test("forgets the oldest and can read them again", () => {
    const log = new Log();
    for (const e of [run(1, "a"), said(2, "user", "b"), ran(3, 1, "out"), said(4, "agent", "c")]) log.add(e);
    log.forget(1);
    expect([names(log), log.oldest]).toEqual([["user:message:2", "agent:message:4"], 2]);
    log.before([run(1, "a")]);
    expect(log.items[0]!.result?.content).toBe("out");
  });

  test("keeps no raw answers, page trees or whole files", () => {
    const log = new Log();
    const heavy = event(1, { action: "run", args: {}, tool_call_metadata: { tool_call_id: "x", model_response: "y".repeat(99) } as never });
    log.add(heavy);
    log.add(event(2, { cause: 1, observation: "edit", content: "", extras: { diff: "@@", old_content: "o", new_content: "n" } }));
    expect(JSON.stringify(heavy)).not.toContain("yyy");
    expect(log.items[0]!.result?.extras).toEqual({ diff: "@@" });
  });

  test("tells statuses where they happened", () => {
    const log = new Log();
    const told = (id: number, status: Event["status"]) => ({ id, timestamp: at, source: "environment", status }) as Event;
    log.before([said(9, "agent", "done"), told(8, { id: "STATUS$EGRESS_CHANGED", message: "off" }), told(7, { id: "STATUS$READY" }), told(6, { conversation_title: "A title" }), told(5, { type: "error", id: "STATUS$ERROR", message: "no answer" }), said(4, "user", "go")]);
    expect(names(log)).toEqual(["user:message:4", "notice:failure:5", "notice:STATUS$EGRESS_CHANGED:8", "agent:message:9"]);
    expect(log.items[1]!.at).toBe(Date.parse(at));
    log.status({ id: "STATUS$EGRESS_CHANGED", message: "off" }, 8);
    expect(log.items).toHaveLength(4);
  });

  test("still asks when an older page tells of older states", () => {
    const log = new Log();
    const asks = run(20, "rm x");
    asks.args!.confirmation_state = "awaiting_confirmation";
    log.before([state(21, "awaiting_user_confirmation"), asks]);
    log.before([state(11, "running"), said(10, "user", "go")]);
    expect(log.items.at(-1)!.asks).toBe(true);
    log.add(state(22, "user_confirmed"));
    expect(log.items.at(-1)!.asks).toBe(false);
  });
});
