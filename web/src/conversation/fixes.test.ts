// @vitest-environment jsdom
import { expect, it } from "vitest";

import { fixesFor } from "./fixes";

it.each([
  ["STATUS$ERROR_LLM_AUTHENTICATION", "key"],
  ["STATUS$ERROR_LLM_OUT_OF_CREDITS", "key, model"],
  ["STATUS$ERROR", "retry, model"],
  ["STATUS$ERROR_BUDGET", "budget"],
  ["STATUS$ERROR_MAX_ITERATIONS", "continue"],
  ["STATUS$ERROR_LLM_SERVICE_UNAVAILABLE", "retry"],
  ["", "retry"],
])("offers for %s: %s", (code, labels) =>
  expect(
    fixesFor(code)
      .map((f) => f.label)
      .join(", "),
  ).toBe(labels),
);

it("offers nothing where nothing helps", () => expect(fixesFor("STATUS$ERROR_USER_BUDGET")).toEqual([]));
