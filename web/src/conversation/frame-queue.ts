// Work that is done with the next frame, together with all that arrived since the last one.

/** How long the work of one frame may take, in ms, so that the page stays responsive. */
const slice = 12;

export class FrameQueue {
  private todo: (() => void)[] = [];
  private planned = false;

  add(work: () => void): void {
    this.todo.push(work);
    this.plan();
  }

  private plan(): void {
    if (this.planned) return;
    this.planned = true;
    // A hidden page has no frames, but its title and sounds still follow what happens.
    if (document.hidden) setTimeout(() => this.flush(), 50);
    else requestAnimationFrame(() => this.flush());
  }

  private flush(): void {
    this.planned = false;
    const until = performance.now() + slice;
    let done = 0;
    try {
      while (done < this.todo.length && performance.now() < until) this.todo[done++]!();
    } finally {
      // Work that throws is dropped, so that it does not block the rest.
      this.todo.splice(0, done);
      if (this.todo.length > 0) this.plan();
    }
  }
}
