// The timeline of a layer or a run: what is in view, and what pointer, wheel and keys do.

const BETWEEN = 14, NEAREST = 4; // pixels between engines; how far off a bar may be pointed at

class Timeline extends Drawing {
  // `changed` is told of the instruction that is chosen, or of null; `moved` of every new view, and
  // whether it has too many tokens for arrows.
  // All cycles are those of a `whole`, a layer or a run.
  constructor(canvas, whole, changed, moved) {
    super();
    Object.assign(this, { canvas, whole, changed, moved, arrows: true, chosen: null, under: null, pending: false });
    this.context = canvas.getContext("2d");
    this.pointers = new Map();
    this.listen();
    new ResizeObserver(() => this.resize()).observe(canvas);
    for (const query of ["(prefers-color-scheme: dark)", "print"]) {
      matchMedia(query).addEventListener("change", () => this.redraw());
    }
  }

  // Another trace; the view stays where it was, so that two can be compared, unless it is `anew`.
  show(tracks, anew = false) {
    const first = anew || !this.tracks;
    this.tracks = tracks;
    this.chosen = this.under = null;
    this.place();
    if (first) this.look(0, this.opening());
    else this.look(this.from, this.to);
    this.resize();
    this.changed(null);
  }

  // The end of the first view: some tens of instructions, so that arrows are seen.
  opening() {
    const some = this.tracks.instructions.slice(0, 40);
    return Math.min(this.tracks.cycles, 1.05 * Math.max(...some.map((each) => each.end)));
  }

  place() {
    let top = MAP + AXIS + 6, engine = 0;
    this.layersTop = top;
    if (this.tracks.layerRows) top += this.tracks.layerRows * ROW + BETWEEN;
    this.bands = this.tracks.names.map(() => ({ top: 0, bottom: 0 }));
    for (const row of this.tracks.rows) {
      if (row.engine !== engine) top += BETWEEN;
      engine = row.engine;
      if (row.lane === 0) this.bands[engine].top = top;
      row.top = top;
      top += ROW;
      this.bands[engine].bottom = top;
    }
    this.height = top + 8;
  }

  resize() {
    if (!this.tracks) return;
    const ratio = devicePixelRatio || 1;
    this.canvas.style.height = `${this.height}px`;
    this.width = this.canvas.clientWidth;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.map = this.tracks.occupancy(Math.max(1, Math.floor(this.width - GUTTER)));
    this.redraw();
  }

  // View -----------------------------------------------------------------------------------------

  look(from, to) {
    const span = Math.min(Math.max(to - from, 20), Math.max(this.tracks.cycles, 20));
    this.from = Math.min(Math.max(from, 0), Math.max(0, this.tracks.cycles - span));
    this.to = this.from + span;
    this.seen = this.tracks.tokens.filter(({ from, to }) => to.start >= this.from && from.end - 1 <= this.to);
    this.moved(this.seen.length > ARROWS);
    this.redraw();
  }

  fit() { this.look(0, this.tracks.cycles); }

  zoom(factor, x = GUTTER + (this.width - GUTTER) / 2) {
    const at = this.cycle(Math.max(x, GUTTER));
    this.look(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  pan(cycles) { this.look(this.from + cycles, this.to + cycles); }

  // Brings an instruction into view and chooses it.
  choose(each) {
    this.chosen = each;
    const span = this.to - this.from;
    if (each && (each.start < this.from || each.start > this.to - 0.1 * span)) {
      this.look(each.start - 0.3 * span, each.start + 0.7 * span);
    }
    this.changed(each);
    this.redraw();
  }

  // Pointer and keys -----------------------------------------------------------------------------

  listen() {
    const on = (name, handler, options) => this.canvas.addEventListener(name, handler, options);
    on("wheel", (event) => this.wheel(event), { passive: false });
    on("pointerdown", (event) => this.press(event));
    on("pointermove", (event) => this.hover(event));
    on("pointerup", (event) => this.release(event));
    on("pointercancel", (event) => { this.still = false; this.release(event); }); // the page scrolls
    on("pointerleave", () => { this.under = null; hideTip(); this.redraw(); });
    on("keydown", (event) => this.key(event));
  }

  wheel(event) {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
    const whole = this.to - this.from >= this.tracks.cycles;
    if (!sideways && whole && event.deltaY > 0) return; // nothing left to zoom out: the page scrolls
    event.preventDefault();
    const pixels = (sideways && event.deltaX) || event.deltaY;
    if (sideways) this.pan((pixels / this.width) * (this.to - this.from));
    else this.zoom(Math.exp(Math.max(-120, Math.min(120, pixels)) * 0.0022), event.offsetX);
  }

  press(event) {
    this.pointers.set(event.pointerId, event.offsetX);
    this.canvas.setPointerCapture(event.pointerId);
    this.onMap = event.offsetY < MAP;
    this.still = true;
    if (this.onMap) this.centre(event.offsetX);
    else this.canvas.classList.add("held");
  }

  release(event) {
    const each = this.hit(event.offsetX, event.offsetY);
    if (this.still && this.pointers.size === 1 && !this.onMap) this.choose(each);
    this.pointers.delete(event.pointerId);
    this.canvas.classList.remove("held");
  }

  hover(event) {
    const before = this.pointers.get(event.pointerId);
    if (before !== undefined) {
      this.drag(event, before);
      return;
    }
    this.under = this.hit(event.offsetX, event.offsetY);
    if (this.under) showTip(this.tracks.lines(this.under), event.clientX, event.clientY);
    else hideTip();
    this.redraw();
  }

  drag(event, before) {
    if (Math.abs(event.offsetX - before) > 2) this.still = false;
    hideTip();
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId);
    if (this.onMap) this.centre(event.offsetX);
    else if (others.length) { // two fingers: the cycles under them stay under them
      const [, other] = others[0];
      const near = Math.abs(before - other), far = Math.abs(event.offsetX - other);
      if (far > 8) this.zoom(near / far, other);
    } else if (!this.still) this.pan(this.cycle(before) - this.cycle(event.offsetX));
    if (!this.still) this.pointers.set(event.pointerId, event.offsetX);
  }

  centre(x) {
    const at = ((x - GUTTER) / (this.width - GUTTER)) * this.tracks.cycles;
    const half = (this.to - this.from) / 2;
    this.look(at - half, at + half);
  }

  hit(x, y) {
    const row = this.tracks.rows.find((each) => y >= each.top && y < each.top + ROW);
    if (!row || x < GUTTER) return null;
    const index = Tracks.after(row.items, this.cycle(x));
    const near = [row.items[index], row.items[index - 1]].filter(Boolean).map((each) =>
      ({ each, away: Math.max(this.x(each.start) - x, x - this.x(each.end), 0) }));
    near.sort((a, b) => a.away - b.away);
    return near.length && near[0].away < NEAREST ? near[0].each : null;
  }

  key(event) {
    const span = this.to - this.from;
    const act = {
      "+": () => this.zoom(0.6), "=": () => this.zoom(0.6), "-": () => this.zoom(1 / 0.6),
      Home: () => this.fit(), Escape: () => this.choose(null),
      ArrowLeft: () => (event.shiftKey ? this.pan(-0.2 * span) : this.stepBy(-1)),
      ArrowRight: () => (event.shiftKey ? this.pan(0.2 * span) : this.stepBy(1)),
      ArrowUp: () => this.stepEngine(-1), ArrowDown: () => this.stepEngine(1),
      Enter: () => this.chosen?.waited_for !== undefined && this.choose(this.tracks.instructions[this.chosen.waited_for]),
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  }

  // The next or previous instruction of the chosen one's engine.
  stepBy(by) {
    const list = this.tracks.engines[this.chosen?.engine ?? 0];
    const at = this.chosen ? list.indexOf(this.chosen) + by : Tracks.after(list, this.from);
    if (list[at]) this.choose(list[at]);
  }

  // What the next engine that does anything does when the chosen instruction starts.
  stepEngine(by) {
    const { engines } = this.tracks, last = this.chosen?.engine ?? 0;
    let engine = last + by;
    while (engines[engine]?.length === 0) engine += by;
    const list = engines[engine] ?? engines[last];
    const at = Tracks.after(list, this.chosen?.start ?? this.from);
    this.choose(list[Math.min(at, list.length - 1)]);
  }
}
