// @vitest-environment jsdom
import { expect, it } from "vitest";

import { fixFor } from "./fixes";

it.each([
  ["STATUS$ERROR_LLM_AUTHENTICATION", "key"],
  ["STATUS$ERROR_BUDGET", "budget"],
  ["STATUS$ERROR_MAX_ITERATIONS", "continue"],
  ["STATUS$ERROR_LLM_SERVICE_UNAVAILABLE", "retry"],
  ["", "retry"],
])("offers for %s: %s", (code, label) => expect(fixFor(code)?.label).toBe(label));

it("offers nothing where nothing helps", () => expect(fixFor("STATUS$ERROR_USER_BUDGET")).toBeUndefined());
