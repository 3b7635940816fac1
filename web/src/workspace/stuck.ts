import { ApiError } from "../lib/api";

/**
 * stuck reports whether a panel that cannot be shown waits for the person to try again. A refresh by itself would take
 * the button away just when they click it. What ends by itself is refreshed: a sandbox that starts or stops, a lost connection.
 */
export function stuck(problem: unknown): boolean {
  return problem instanceof ApiError && problem.code !== "WORKSPACE$NOT_READY" && problem.status !== 409 && problem.status !== 503;
}
