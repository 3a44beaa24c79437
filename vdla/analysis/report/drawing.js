// The timeline on its canvas: rows of instructions, idle time, token arrows, all of it above.

const GUTTER = 86, MAP = 26, AXIS = 24, ROW = 20; // pixels: names, overview, scale, a row
const ARROWS = 500; // more than that can't be told apart

// Draws the cycles `from` to `to` of `tracks`; which these are, and what is lit, is Timeline's.
class Drawing {
  // Pixel of a cycle, and cycle of a pixel.
  x(cycle) { return GUTTER + ((cycle - this.from) / (this.to - this.from)) * (this.width - GUTTER); }
  cycle(x) { return this.from + ((x - GUTTER) / (this.width - GUTTER)) * (this.to - this.from); }

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
    this.drawLayers(c);
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
    if (this.tracks.layerRows) {
      c.fillStyle = this.colour("ink");
      c.font = "600 12px system-ui, sans-serif";
      c.fillText("layers", 10, this.layersTop + this.tracks.layerRows * ROW / 2);
    }
    for (const [engine, band] of this.bands.entries()) {
      if (!band.bottom) continue;
      c.fillStyle = this.colour("ink");
      c.font = "600 12px system-ui, sans-serif";
      c.fillText(this.tracks.names[engine], 10, (band.top + band.bottom) / 2);
    }
  }

  // Each layer from its first start to its last finish, where there are several.
  drawLayers(c) {
    if (!this.tracks.layerRows) return;
    c.font = "600 11px system-ui, sans-serif";
    for (const { name, start, end, row } of this.tracks.layers) {
      const left = Math.max(GUTTER, this.x(start)), right = Math.min(this.width, this.x(end));
      if (right - left < 1) continue;
      const top = this.layersTop + row * ROW;
      c.fillStyle = this.colour("hint");
      c.fillRect(left, top + 2, right - left, ROW - 4);
      c.strokeStyle = this.colour("soft");
      c.lineWidth = 1;
      c.strokeRect(left + 0.5, top + 2.5, Math.max(right - left - 1, 1), ROW - 5);
      c.fillStyle = this.colour("ink");
      if (c.measureText(name).width <= right - left - 8) c.fillText(name, left + 4, top + ROW / 2 + 0.5);
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
    const [verb, memory] = each.name.split(" ");
    const text = right - left > 70 ? each.name : verb === "LOAD" ? memory : verb;
    if (c.measureText(text).width > right - left - 6) return;
    c.fillStyle = ["gemm", "store", "forward"].includes(each.kind) ? "#fff" : "#12161a";
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

  // How busy COMPUTE is over all cycles, and which part is in view.
  drawMap(c) {
    c.fillStyle = this.colour("hint");
    c.fillRect(0, 0, this.width, MAP);
    c.fillStyle = this.colour("gemm");
    this.map.forEach((share, i) => c.fillRect(GUTTER + i, MAP - 2 - share * (MAP - 6), 1, share * (MAP - 6)));
    c.fillStyle = this.colour("soft");
    c.font = "11px system-ui, sans-serif";
    c.fillText(`whole ${this.whole}`, 10, MAP / 2);
    const at = (cycle) => GUTTER + (cycle / this.tracks.cycles) * (this.width - GUTTER);
    c.strokeStyle = this.colour("ink");
    c.lineWidth = 1.5;
    c.strokeRect(at(this.from) + 0.75, 1, Math.max(3, at(this.to) - at(this.from) - 1.5), MAP - 2);
  }
}
