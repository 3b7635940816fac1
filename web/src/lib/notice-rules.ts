// What notifications need to know, apart from the browser.

/** describe names a browser and its system, as far as browsers say it. */
export function describe(agent: string): string {
  const find = (forms: Record<string, RegExp>) => Object.keys(forms).find((k) => forms[k]!.test(agent));
  const browser = find({ Edge: /Edg/, Opera: /OPR\//, Firefox: /Firefox|FxiOS/, Chrome: /Chrome|CriOS/, Safari: /Safari/ });
  const system = find({ Android: /Android/, iPhone: /iPhone/, iPad: /iPad/, Windows: /Windows/, macOS: /Mac OS/, Linux: /Linux/ });
  return [browser, system].filter(Boolean).join(" · ");
}

/** quiet is true in quiet hours, which may go past midnight. */
export function quiet({ start, end, time_zone }: { start: string; end: string; time_zone: string }, at: Date): boolean {
  const clock = at.toLocaleTimeString("en-GB", { timeZone: time_zone, hour: "2-digit", minute: "2-digit" });
  return start < end ? start <= clock && clock < end : clock >= start || clock < end;
}
