/** A value that is loaded from the server, and loaded again after a change. */
export class Remote<T> {
  value = $state.raw<T | undefined>();
  error = $state("");

  constructor(private readonly ask: () => Promise<T>) {
    void this.load();
  }

  async load(): Promise<void> {
    try {
      this.value = await this.ask();
      this.error = "";
    } catch (err) {
      this.error = err instanceof Error ? err.message : String(err);
    }
  }
}
