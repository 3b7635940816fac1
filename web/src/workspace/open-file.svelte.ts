// The file that is open: what was read, what was made of it, and how the two are merged
// with concurrent changes.
import { ApiError } from "../lib/api";
import * as routes from "./routes";

export class OpenFile {
  /** The text or, for pictures and the like, a data: address. undefined until it is read. */
  stored = $state<string | undefined>();
  text = $state("");
  problem = $state("");
  /** Whether the file is there and only cannot be shown. */
  takeable = $state(false);
  saving = $state(false);
  /** The concurrent change that blocks saving. */
  conflict = $state.raw<routes.FileContent | undefined>();
  /** The file was written or deleted elsewhere while it has unsaved changes. */
  behind = $state<"" | "changed" | "gone">("");
  private etag: string | null = null;
  /** Counts what was written from here: what was asked for before tells of the past. */
  private written = 0;

  constructor(
    readonly id: string,
    readonly path: string,
  ) {}

  /** What kind of picture and the like it is, told by its name: a text may begin in the same way. */
  get media(): string {
    if (!shown.test(this.path)) return "";
    return /^data:(\w+\/[\w.+-]+);/.exec(this.stored ?? "")?.[1] ?? "";
  }

  get changed(): boolean {
    return this.stored !== undefined && !this.media && this.text !== this.stored;
  }

  /** read takes the file as it is now; changes that are not saved stay. */
  async read(): Promise<void> {
    const before = this.written;
    try {
      const got = await routes.read(this.id, this.path);
      if (before !== this.written) return;
      this.problem = "";
      if (got.etag === this.etag) return;
      if (this.changed) this.behind = "changed";
      else this.take(got);
    } catch (err) {
      // What can be read no more is still worth saving.
      this.takeable = err instanceof ApiError && [413, 415].includes(err.status);
      if (!this.changed) this.problem = err instanceof Error ? err.message : String(err);
      else if (missing(err)) this.lost();
    }
  }

  /** save is whether the file now has the text of here. */
  async save(): Promise<boolean> {
    if (this.saving || this.stored === undefined) return false;
    const text = this.text;
    this.saving = true;
    try {
      this.wrote(text, (await routes.save(this.id, this.path, text, this.etag)).etag);
      return true;
    } catch (err) {
      if (!(err instanceof ApiError) || err.status !== 409) throw err;
      await this.clash();
      return false;
    } finally {
      this.saving = false;
    }
  }

  /** mine overwrites the concurrent change that was shown. */
  async mine(): Promise<boolean> {
    this.etag = this.conflict?.etag ?? null;
    this.conflict = undefined;
    return this.save();
  }

  /** theirs drops the changes of here. */
  theirs(): void {
    if (this.conflict) this.take(this.conflict);
    this.conflict = undefined;
  }

  /** reload drops the changes of here for what is stored. */
  async reload(): Promise<void> {
    this.take(await routes.read(this.id, this.path));
  }

  private async clash(): Promise<void> {
    try {
      this.conflict = await routes.read(this.id, this.path);
    } catch (err) {
      if (!missing(err)) throw err;
      this.lost();
    }
  }

  /** It was deleted: saving makes it anew. */
  private lost(): void {
    this.etag = null;
    this.behind = "gone";
  }

  private take(got: routes.FileContent): void {
    this.etag = got.etag;
    this.stored = got.code;
    this.text = got.code;
    this.behind = "";
  }

  private wrote(text: string, etag: string): void {
    this.written++;
    this.etag = etag;
    this.stored = text;
    this.behind = "";
  }
}

/** Names of files that the server gives as data: addresses. */
const shown = /\.(png|jpe?g|gif|bmp|webp|ico|avif|pdf|mp4|webm|ogg|mov)$/i;

const missing = (err: unknown) => err instanceof ApiError && err.status === 404;
