// The timeline of one layer on a canvas: rows of instructions, idle time, token arrows.

const GUTTER = 86, MAP = 26, AXIS = 24, ROW = 20, BETWEEN = 14, ARROWS = 500, NEAREST = 4;

class Timeline {
  // `changed` is told of the instruction that is chosen, or of null; `moved` of every new view, and
  // whether it has too many tokens for arrows.
  constructor(canvas, changed, moved) {
    Object.assign(this, { canvas, changed, moved, arrows: true, chosen: null, under: null, pending: false });
    this.context = canvas.getContext("2d");
    this.pointers = new Map();
    this.listen();
    new ResizeObserver(() => this.resize()).observe(canvas);
    for (const query of ["(prefers-color-scheme: dark)", "print"]) {
      matchMedia(query).addEventListener("change", () => this.redraw());
    }
  }

  // Another trace; the view stays where it was, so that two can be compared.
  show(tracks) {
    const first = !this.tracks;
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
    this.bands = ENGINES.map(() => ({ top: 0, bottom: 0 }));
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

  x(cycle) { return GUTTER + ((cycle - this.from) / (this.to - this.from)) * (this.width - GUTTER); }
  cycle(x) { return this.from + ((x - GUTTER) / (this.width - GUTTER)) * (this.to - this.from); }
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
    for (const name of ["pointerup", "pointercancel"]) on(name, (event) => this.release(event));
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

  // What another engine does when the chosen instruction starts.
  stepEngine(by) {
    const engine = Math.min(ENGINES.length - 1, Math.max(0, (this.chosen?.engine ?? 0) + by));
    const list = this.tracks.engines[engine];
    const at = Tracks.after(list, this.chosen?.start ?? this.from);
    this.choose(list[Math.min(at, list.length - 1)]);
  }

  // Drawing --------------------------------------------------------------------------------------

  redraw() {
    if (this.pending || !this.tracks) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.draw(); });
  }

  draw() {
    const style = getComputedStyle(document.documentElement);
    const known = {};
    this.colour = (name) => (known[name] ??= style.getPropertyValue(`--${name}`));
    const { context: c } = this;
    c.fillStyle = this.colour("card");
    c.fillRect(0, 0, this.width, this.height);
    this.drawAxis(c);
    this.drawIdle(c);
    c.save();
    c.beginPath();
    c.rect(GUTTER, MAP, this.width - GUTTER, this.height);
    c.clip();
    for (const row of this.tracks.rows) this.drawRow(c, row);
    this.drawTokens(c);
    c.restore();
    this.drawMap(c);
  }

  drawAxis(c) {
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    const by = step(this.to - this.from, Math.max(2, (this.width - GUTTER) / 110));
    for (let cycle = Math.ceil(this.from / by) * by; cycle <= this.to; cycle += by) {
      const x = Math.round(this.x(cycle)) + 0.5;
      c.fillStyle = this.colour("grid");
      c.fillRect(x, MAP + AXIS - 4, 1, this.height);
      c.fillStyle = this.colour("soft");
      c.fillText(count(cycle), x + 4, MAP + AXIS / 2 + 2);
    }
    for (const [engine, band] of this.bands.entries()) {
      if (!band.bottom) continue;
      c.fillStyle = this.colour("ink");
      c.font = "600 12px system-ui, sans-serif";
      c.fillText(ENGINES[engine], 10, (band.top + band.bottom) / 2);
    }
  }

  // Time in which an engine had nothing in flight, coloured by what it waited for.
  drawIdle(c) {
    for (const [engine, band] of this.bands.entries()) {
      const list = this.tracks.engines[engine];
      for (let i = Tracks.after(list, this.from); i < list.length; i++) {
        const each = list[i], from = each.start - each.stalled;
        if (from > this.to) break;
        if (!each.stall) continue;
        const left = Math.max(GUTTER, this.x(from)), right = Math.min(this.width, this.x(each.start));
        if (right - left < 0.5) continue;
        c.globalAlpha = 0.24;
        c.fillStyle = this.colour(each.stall);
        c.fillRect(left, band.top - 3, right - left, band.bottom - band.top + 6);
        c.globalAlpha = 1;
      }
    }
  }

  // Bars too thin to see are drawn by how much of each pixel they cover.
  drawRow(c, row) {
    const cover = new Float64Array(Math.ceil(this.width) + 2), kinds = [];
    for (let i = Tracks.after(row.items, this.from); i < row.items.length; i++) {
      const each = row.items[i];
      if (each.start > this.to) break;
      const left = this.x(each.start), right = this.x(each.end);
      if (right - left < 2) {
        const pixel = Math.max(0, Math.floor(left));
        cover[pixel] += right - left;
        kinds[pixel] = each.kind;
      } else {
        c.fillStyle = this.colour(each.kind);
        c.fillRect(left, row.top + 2, right - left - (right - left > 4 ? 1 : 0), ROW - 4);
        this.drawName(c, each, Math.max(left, GUTTER), Math.min(right, this.width), row.top + ROW / 2);
      }
    }
    for (const [pixel, kind] of kinds.entries()) {
      if (!kind) continue;
      c.globalAlpha = Math.min(1, Math.max(0.35, cover[pixel]));
      c.fillStyle = this.colour(kind);
      c.fillRect(pixel, row.top + 2, 1, ROW - 4);
    }
    c.globalAlpha = 1;
    for (const each of [this.chosen, this.under]) {
      if (each?.row !== row) continue;
      c.strokeStyle = this.colour("ink");
      c.lineWidth = 2;
      c.strokeRect(this.x(each.start), row.top + 2, Math.max(this.x(each.end) - this.x(each.start), 3), ROW - 4);
    }
  }

  drawName(c, each, left, right, y) {
    if (right - left < 26) return;
    c.font = "600 10.5px system-ui, sans-serif";
    const text = right - left > 70 ? each.name : each.name.split(" ").pop();
    if (c.measureText(text).width > right - left - 6) return;
    c.fillStyle = each.kind === "gemm" || each.kind === "store" ? "#fff" : "#12161a";
    c.fillText(text, left + 4, y + 0.5);
  }

  drawTokens(c) {
    const lit = this.under ?? this.chosen;
    for (const token of this.arrows && this.seen.length <= ARROWS ? this.seen : []) {
      if (token.from !== lit && token.to !== lit) this.drawArrow(c, token, lit ? 0.3 : 0.62, 1.1);
    }
    if (!lit) return;
    for (const from of lit.pops) this.drawArrow(c, { from, to: lit }, 1, 2);
    for (const to of lit.pushes) this.drawArrow(c, { from: lit, to }, 1, 2);
  }

  drawArrow(c, { from, to }, alpha, thick) {
    const x = [this.x(from.end), this.x(to.start)];
    const y = [from.row.top + ROW / 2, to.row.top + ROW / 2];
    const down = Math.sign(y[1] - y[0]) || 1, bend = Math.max(10, 0.35 * Math.abs(x[1] - x[0]));
    c.globalAlpha = alpha;
    c.strokeStyle = c.fillStyle = this.colour("ink");
    c.lineWidth = thick;
    const tip = y[1] - down * (ROW / 2 - 2), tail = y[0] + down * (ROW / 2 - 3);
    c.beginPath();
    c.moveTo(x[0], tail);
    c.bezierCurveTo(x[0] + bend * 0.3, tail + down * 12, x[1] - bend * 0.3, tip - down * 14, x[1], tip - down * 4);
    c.stroke();
    c.beginPath();
    c.moveTo(x[1], tip);
    c.lineTo(x[1] - 3.2, tip - down * 6);
    c.lineTo(x[1] + 3.2, tip - down * 6);
    c.fill();
    c.globalAlpha = 1;
  }

  // How busy COMPUTE is over the whole layer, and which part is in view.
  drawMap(c) {
    c.fillStyle = this.colour("hint");
    c.fillRect(0, 0, this.width, MAP);
    c.fillStyle = this.colour("gemm");
    this.map.forEach((share, i) => c.fillRect(GUTTER + i, MAP - 2 - share * (MAP - 6), 1, share * (MAP - 6)));
    c.fillStyle = this.colour("soft");
    c.font = "11px system-ui, sans-serif";
    c.fillText("whole layer", 10, MAP / 2);
    const at = (cycle) => GUTTER + (cycle / this.tracks.cycles) * (this.width - GUTTER);
    c.strokeStyle = this.colour("ink");
    c.lineWidth = 1.5;
    c.strokeRect(at(this.from) + 0.75, 1, Math.max(3, at(this.to) - at(this.from) - 1.5), MAP - 2);
  }
}
