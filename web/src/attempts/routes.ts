// API requests for attempts.
import { ApiError, api, data, once, retryKey, type Schemas } from "../lib/api";

export type Attempts = Schemas["Attempts"];
export type AttemptSet = Schemas["AttemptSet"];
export type Attempt = Schemas["Attempt"];
export type StartAttempts = Schemas["StartAttempts"];

const path = (id: string) => ({ path: { conversation_id: id } });
const one = (id: string, attempt: string) => ({
  path: { conversation_id: id, attempt_id: attempt },
  header: { "Idempotency-Key": retryKey() },
});

export const list = (id: string) => data(api.GET("/api/conversations/{conversation_id}/attempts", { params: path(id) }));

/** start starts attempts. It can be retried after a failure: the same attempts are not started twice. */
export const start = (id: string, body: StartAttempts) =>
  once(`attempts ${id} ${JSON.stringify(body)}`, (key) =>
    data(api.POST("/api/conversations/{conversation_id}/attempts", { params: { ...path(id), header: { "Idempotency-Key": key } }, body })),
  );

export const keep = (id: string, attempt: string) =>
  data(api.POST("/api/conversations/{conversation_id}/attempts/{attempt_id}/keep", { params: one(id, attempt) }));

export const test = (id: string, attempt: string) =>
  data(api.POST("/api/conversations/{conversation_id}/attempts/{attempt_id}/test", { params: one(id, attempt) }));

export const stop = (attempt: string) =>
  data(
    api.POST("/api/conversations/{conversation_id}/stop", {
      params: { ...path(attempt), header: { "Idempotency-Key": retryKey() } },
    }),
  );

/** changing reports whether the results of an attempt may still change. */
export const changing = (a: Attempt) => a.state === "starting" || (a.state === "started" && (a.working || a.test?.state === "running"));

/** faults returns the server's error messages by field, such as task or attempts.1.model. Other errors have the key "". */
export function faults(err: unknown): Record<string, string> {
  if (!(err instanceof ApiError)) return { "": err instanceof Error ? err.message : String(err) };
  if (err.fields.length > 0) return Object.fromEntries(err.fields.map((f) => [f.loc.slice(1).join("."), f.msg]));
  const [, at, words] = /^attempts\[(\d+)\]\.model: (.*)$/s.exec(err.message) ?? [];
  return at && words ? { [`attempts.${at}.model`]: words } : { "": err.message };
}
