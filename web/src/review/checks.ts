/** failed says whether a check such as "test: failure" did not pass. */
export const failed = (check: string): boolean =>
  /: *(fail|error|cancel|timed|action_required|warning)/i.test(check.slice(check.lastIndexOf(":")));
