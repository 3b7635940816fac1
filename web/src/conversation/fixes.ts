// What helps against a failure, by its code: the button of its card.
import { router } from "../lib/router.svelte";
import type { OpenConversation } from "./open-conversation.svelte";
import * as routes from "./routes";

export interface Fix {
  /** The key of the button's text. */
  label: "key" | "settings" | "model" | "budget" | "git" | "continue" | "retry";
  run(conversation: OpenConversation): void;
}

const go = (path: string) => () => router.go(path);
const again = (c: OpenConversation) => void c.attempt(() => routes.become(c.id, "running"));
const choose = (c: OpenConversation) => (c.choosing = true);

const fixes: Record<string, Fix> = {
  STATUS$ERROR_LLM_AUTHENTICATION: { label: "key", run: go("/settings/model?field=api_key") },
  CONFIGURATION$SETTINGS_NOT_FOUND: { label: "settings", run: go("/settings/model") },
  CONFIGURATION$MODEL_UNAVAILABLE: { label: "model", run: choose },
  CONFIGURATION$MODEL_PRICE_UNKNOWN: { label: "budget", run: choose },
  STATUS$ERROR_BUDGET: { label: "budget", run: choose },
  STATUS$GIT_PROVIDER_AUTHENTICATION_ERROR: { label: "git", run: go("/settings/git") },
  STATUS$ERROR_MAX_ITERATIONS: { label: "continue", run: again },
  STATUS$ERROR_STUCK: { label: "continue", run: again },
};

/** The month's limit of a user is the administrator's to raise. */
const helpless = new Set(["STATUS$ERROR_USER_BUDGET"]);

/** fixFor is what to offer for a failure; any other one may be over after another try. */
export function fixFor(code: string): Fix | undefined {
  return helpless.has(code) ? undefined : (fixes[code] ?? { label: "retry", run: again });
}
