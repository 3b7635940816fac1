// The small decisions of the panels.
import { describe, expect, it } from "vitest";

import type { Display, Event } from "../lib/events";
import { displays } from "../testing/displays";
import { next, split } from "./changed-files";
import { hosts, matching, merged } from "./network-log";
import { withResults } from "./browser-history";
import type { Asked } from "./routes";
import { served } from "./ports";
import { affectedPanels } from "./affected-panels";
import { ended, fresh, good, latin, pieces } from "./terminal-protocol";

describe("changes", () => {
  it("splits a path", () => {
    expect(split("a/b/c.go")).toEqual(["a/b/", "c.go"]);
    expect(split("c.go")).toEqual(["", "c.go"]);
    expect(split("a/b/")).toEqual(["a/", "b/"]);
  });

  it.each([
    ["nothing was chosen", [], ["a", "b"], undefined, "a"],
    ["it is still there", ["a", "b"], ["x", "b"], "b", "b"],
    ["it is gone", ["a", "b", "c"], ["a", "c"], "b", "c"],
    ["the last is gone", ["a", "b"], ["a"], "b", "a"],
    ["all are gone", ["a"], [], "a", undefined],
  ])("chooses when %s", (_, before, now, chosen, want) => expect(next(before as string[], now as string[], chosen)).toBe(want));
});

const event = (kind: string, payload: object, id = 1) => ({ id, kind, time: "2026-01-02T15:04:05.000000Z", payload }) as Event;
const returned = (display: Display, more: object = {}, id = 1) =>
  event("tool_returned", { id: "c", name: "my_tool", display, cause: 1, outcome: "ok", ...more }, id);

describe("events", () => {
  it.each([
    [returned(displays.create), { files: true, pages: false, status: false }],
    [returned(displays.read), { files: false, pages: false, status: false }],
    [returned(displays.command), { files: true, pages: false, status: false }],
    [returned(displays.plain, { args: { command: "view" } }), { files: true, pages: false, status: false }],
    [returned(displays.steps), { files: false, pages: true, status: false }],
    [returned(displays.thought), { files: false, pages: false, status: false }],
    [event("command_ended", { cause: 1, command: "ls", outcome: "ok" }), { files: true, pages: false, status: false }],
    [event("tool_called", { display: displays.command }), { files: false, pages: false, status: false }],
    [event("workspace_ready", {}), { files: true, pages: false, status: true }],
    [event("turn_began", {}), { files: false, pages: false, status: true }],
    [event("stopped", {}), { files: false, pages: false, status: true }],
  ])("%j", (e, want) => expect(affectedPanels(e)).toEqual(want));
});

describe("the ledger", () => {
  const asked = (id: number, more: Partial<Asked> = {}): Asked => ({
    id,
    at: "",
    took_ms: 0,
    call: "",
    method: "GET",
    host: "example.org",
    port: 443,
    sent: 0,
    received: 0,
    verdict: "allowed",
    reason: "",
    ...more,
  });

  it("has each request once, newest first, as it was read last", () => {
    expect(merged([asked(3, { received: 1 }), asked(1)], [asked(4), asked(3, { received: 9 })]).map((a) => [a.id, a.received])).toEqual([
      [4, 0],
      [3, 9],
      [1, 0],
    ]);
  });

  it("is filtered by words and verdict", () => {
    const list = [asked(1), asked(2, { host: "other.test", verdict: "refused", reason: "Not on the list" })];
    expect(matching(list, "", "").length).toBe(2);
    expect(matching(list, " EXAMPLE.org:443 ", "").map((a) => a.id)).toEqual([1]);
    expect(matching(list, "the list", "").map((a) => a.id)).toEqual([2]);
    expect(matching(list, "", "refused").map((a) => a.id)).toEqual([2]);
    expect(matching(list, "example", "refused")).toEqual([]);
  });

  it("reads a list of hosts", () => expect(hosts(" a.org \n\n*.b.org, c.org:22\n")).toEqual(["a.org", "*.b.org", "c.org:22"]));
});

describe("the browser's history", () => {
  it("is in order, without doubles, and holds no more than is shown", () => {
    const look = (id: number) =>
      returned(
        displays.steps,
        { output: "words", details: { url: `u${id}`, screenshot: id === 8 ? "data:image/png;base64," : "", dom_object: {} } },
        id,
      );
    const lost = returned(displays.page, { outcome: "failed", output: "no such host" }, 5);
    const old = event("imported", { as: [look(2)] }, 2);
    const all = withResults(withResults([], [look(9), look(7)]), [look(9), look(8), lost, old]);
    expect(all.map((l) => [l.id, l.url, l.text])).toEqual([
      [2, "u2", "words"],
      [7, "u7", "words"],
      [8, "u8", ""],
      [9, "u9", "words"],
    ]);
    expect(Object.keys(all[0]!)).not.toContain("details");
  });
});

it("gives ports their addresses", () => {
  expect(served([8080, 22], { "http://a.test/": 8080, "http://b.test/": 3000 })).toEqual([
    { port: 22 },
    { port: 3000, url: "http://b.test/" },
    { port: 8080, url: "http://a.test/" },
  ]);
});

describe("the wire of a terminal", () => {
  it("cuts what is pasted", () => {
    const sizes = (n: number) => pieces(new Uint8Array(n)).map((p) => p.length);
    expect(sizes(0)).toEqual([]);
    expect(sizes(32 << 10)).toEqual([32768]);
    expect(sizes(70_000)).toEqual([32768, 32768, 4464]);
  });

  it("sends characters of the mouse as bytes", () => expect([...latin("\x1b[M\xff")]).toEqual([27, 91, 77, 255]));

  it.each([
    [1000, "shell"],
    [1012, "sandbox"],
    [4001, "login"],
    [1006, "lost"],
    [1001, "lost"],
  ])("knows what %i means", (code, want) => expect(ended(code)).toBe(want));

  it("finds names that are free and that the server takes", () => {
    expect(fresh([])).toBe("main");
    expect(fresh(["main"])).toBe("shell-2");
    expect(fresh(["main", "shell-2", "shell-4"])).toBe("shell-3");
    expect([fresh([]), fresh(["main"])].every((n) => good.test(n))).toBe(true);
    expect(good.test("a b")).toBe(false);
  });
});
