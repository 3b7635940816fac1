// @vitest-environment jsdom
import { expect, it } from "vitest";

import { all, press, render, soon, the, type, words } from "../testing/page";
import Autocomplete from "./Autocomplete.svelte";

it("chooses what was found for the typed text, also if Enter comes before it is found", async () => {
  let answer: ((names: string[]) => void) | undefined;
  const search = (text: string) =>
    text === ""
      ? [{ value: "a/first", name: "a/first" }]
      : new Promise<{ value: string; name: string }[]>((done) => (answer = (names) => done(names.map((name) => ({ value: name, name })))));
  let chosen = "";
  render(Autocomplete, { value: "", search, onchange: (v: string) => (chosen = v), "aria-label": "Model" });
  const field = the("combobox", "Model");
  field.focus();
  await soon(() => expect(all("option").map((o) => words(o))).toEqual(["a/first"]));
  type(field, "sonnet 4.5");
  press("Enter", field);
  expect(chosen).toBe("");
  await soon(() => expect(answer).toBeTruthy());
  answer!(["b/sonnet-4-5"]);
  await soon(() => expect(chosen).toBe("b/sonnet-4-5"));
});
