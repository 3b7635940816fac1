// The public API, typed by its own document. The browser's cookie says who is asking.
import createClient, { type Middleware } from "openapi-fetch";

import { t } from "./i18n.svelte";
import { heard } from "./now";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

/** What is wrong with one field, as the server says it. */
export interface FieldError {
  loc: (string | number)[];
  msg: string;
  type: string;
}

/** An answer other than success, in words for a person. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code: string,
    readonly fields: FieldError[],
    readonly requestId: string,
    /** The body of the response. */
    readonly body?: unknown,
  ) {
    super(message);
  }

  /** The words about one field, by its name in the body or the query. */
  field(name: string): string | undefined {
    return this.fields.find((f) => f.loc.slice(1).join(".") === name)?.msg;
  }
}

/** Called when the login is not good any more. */
export const onLoggedOut: { call: () => void } = { call: () => {} };

/** Some answers have a list of sentences there. */
const isField = (f: unknown): f is FieldError => typeof f === "object" && f !== null && "loc" in f;

export function toError(answer: Response, body: unknown): ApiError {
  const b = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
  const fields = Array.isArray(b.detail) ? b.detail.filter(isField) : [];
  const words = [
    b.message,
    b.error,
    typeof b.detail === "string" ? b.detail : undefined,
    fields[0]?.msg,
    typeof body === "string" ? body : undefined,
  ];
  const message = words.find((w) => typeof w === "string" && w !== "") as string | undefined;
  return new ApiError(
    answer.status,
    message ?? answer.statusText,
    String(b.msg_id ?? ""),
    fields,
    answer.headers.get("X-Request-Id") ?? "",
    body,
  );
}

const tokenRefused = "STATUS$GIT_PROVIDER_AUTHENTICATION_ERROR";

const failures: Middleware = {
  async onResponse({ response }) {
    heard(response.headers.get("Date"));
    if (response.ok) return;
    const body = await parsed(response.clone());
    const err = toError(response, body);
    // A git provider that does not take a token is a 401 too, in words or with a name of its own.
    if (response.status === 401 && typeof body !== "string" && err.code !== tokenRefused) onLoggedOut.call();
    throw err;
  },
  onError: ({ error }) => unanswered(error),
};

/** Browsers' messages for a missing response are not helpful, and differ. The type of the error stays. */
export const unanswered = (err: unknown) => (err instanceof TypeError ? new TypeError(t("unreachable")) : undefined);

async function parsed(answer: Response): Promise<unknown> {
  const text = await answer.text();
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Addresses are below the page's <base>. */
export const baseUrl = document.baseURI.replace(/\/$/, "");

export const api = createClient<paths>({ baseUrl });
api.use(failures);

/** One's data, or the failure as an exception: answers that are not success never get here. */
export async function data<T>(answer: Promise<{ data?: T }>): Promise<T> {
  return (await answer).data as T;
}

export { once, retryKey } from "./retry";
