// The conversations of the person, kept up to date by the server while they are shown.
import { api, baseUrl, data } from "../lib/api";
import { type Conversation, type Filter, rested, withPage, withPlace, withRow, without } from "./conversation-rows";

const longestPause = 10_000;

export class List {
  rows = $state.raw<Conversation[]>([]);
  filter = $state.raw<Filter>({ query: "", status: "" });
  /** Whether the rows are those of the filter. */
  loaded = $state(false);
  connected = $state(true);
  failed = $state("");
  /** Called when an agent left off working. */
  onrest: (row: Conversation) => void = () => {};
  private next = $state<string | null>(null);
  private asked = 0;
  /** What changed while rows were on their way: they may be older than that. */
  private changedRows: Conversation[] = [];
  private gone = new Set<string>();

  /** whole: rows that change are shown wherever they are in the list, not only above its last row. */
  constructor(
    private readonly pageSize = 20,
    private readonly whole = false,
  ) {}

  get more(): boolean {
    return this.next !== null;
  }

  /** follow keeps the list true until the result is called; for onMount. */
  follow(): () => void {
    let source: EventSource | undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let pause = 500;
    let missed = false;

    const open = () => {
      source = new EventSource(`${baseUrl}/api/conversations/stream`);
      source.onopen = () => {
        pause = 500;
        this.connected = true;
      };
      source.addEventListener("snapshot", (e) => {
        for (const row of (JSON.parse(e.data) as { results: Conversation[] }).results) this.changed(row);
        // Deletions during a lost connection are in no snapshot.
        if (missed) void this.load();
        missed = true;
      });
      source.addEventListener("conversation", (e) => this.changed(JSON.parse(e.data)));
      source.addEventListener("queue", (e) => {
        const { conversation_id, queue } = JSON.parse(e.data) as Pick<Conversation, "conversation_id" | "queue">;
        this.rows = withPlace(this.rows, conversation_id, queue ?? null);
      });
      source.addEventListener("deleted", (e) => this.remove((JSON.parse(e.data) as { conversation_id: string }).conversation_id));
      source.onerror = () => {
        this.connected = false;
        missed = true;
        if (source?.readyState !== EventSource.CLOSED) return; // the browser tries again
        void this.load(); // which detects an expired login
        timer = setTimeout(open, pause);
        pause = Math.min(2 * pause, longestPause);
      };
    };
    open();
    void this.load();
    return () => {
      clearTimeout(timer);
      source?.close();
    };
  }

  /** find shows other rows. */
  find(filter: Filter): void {
    this.filter = filter;
    this.loaded = false;
    void this.load();
  }

  /** load asks for what is shown again, from the top. */
  async load(): Promise<void> {
    const mine = ++this.asked;
    this.changedRows = [];
    const shown = Math.min(100, Math.max(this.pageSize, this.loaded ? this.rows.length : 0));
    try {
      const page = await this.page(shown);
      if (mine !== this.asked) return;
      this.next = page.next_page_id;
      this.rows = this.updated(withPage([], page.results ?? []));
      this.failed = "";
      this.loaded = true;
    } catch (err) {
      if (mine === this.asked) this.failed = words(err);
    }
  }

  async showMore(): Promise<void> {
    if (!this.next) return;
    const mine = ++this.asked;
    this.changedRows = [];
    const page = await this.page(this.pageSize, this.next);
    if (mine !== this.asked) return;
    this.next = page.next_page_id;
    this.rows = this.updated(withPage(this.rows, page.results ?? []));
  }

  remove(id: string): void {
    this.gone.add(id);
    this.rows = without(this.rows, id);
  }

  /** changed takes a row as it is now. */
  changed(row: Conversation): void {
    const before = this.rows.find((r) => r.conversation_id === row.conversation_id);
    if (rested(before, row)) this.onrest(row);
    this.changedRows.push(row);
    if (this.loaded) this.rows = this.with(this.rows, row);
  }

  private with(rows: Conversation[], row: Conversation): Conversation[] {
    return this.gone.has(row.conversation_id)
      ? without(rows, row.conversation_id)
      : withRow(rows, row, this.filter, this.whole || !this.more);
  }

  /** updated are rows as they are now, after what came while they were on their way. */
  private updated(rows: Conversation[]): Conversation[] {
    const left = rows.filter((r) => !this.gone.has(r.conversation_id));
    const now = this.changedRows.reduce((list, row) => this.with(list, row), left);
    this.changedRows = [];
    return now;
  }

  private page(limit: number, page_id?: string) {
    const { query, status } = this.filter;
    return data(
      api.GET("/api/conversations", {
        params: { query: { limit, page_id, query: query.trim() || undefined, status: status || undefined } },
      }),
    );
  }
}

function words(err: unknown): string {
  return err instanceof Error ? err.message : String(err);
}
