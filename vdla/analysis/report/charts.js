// Columns per layer: utilization and causes; and lines over memory latency.

const MARGIN = { left: 46, right: 14, top: 12 };
const threadColour = (rank) => `var(--t${rank % 8})`;

// A chart's frame: an SVG as wide as its place, or as its columns need.
function frame(node, label, needed, height) {
  const width = Math.max(node.clientWidth, needed);
  const svg = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `${label}. Arrow keys go from mark to mark.` });
  node.replaceChildren(svg);
  return { svg, width };
}

// Horizontal grid lines with labels, `y` from value to pixel.
function grid(svg, values, y, width, text) {
  for (const value of values) {
    svg.append(
      shape("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(value), y2: y(value) }),
      shape("text", { x: MARGIN.left - 7, y: y(value) + 4, "text-anchor": "end" }, text(value)));
  }
}

// Names under columns: level while they fit, else slanted.
function names(svg, layers, centre, top, room) {
  const level = Math.max(...layers.map((name) => name.length)) * 6.6 < room;
  for (const [i, name] of layers.entries()) {
    const shown = name.length > 24 ? `${name.slice(0, 23)}…` : name;
    svg.append(level
      ? shape("text", { x: centre(i), y: top + 16, "text-anchor": "middle" }, name)
      : shape("text", { "text-anchor": "end", transform: `translate(${centre(i) + 4} ${top + 12}) rotate(-42)` }, shown));
  }
  return level;
}

const nameRoom = (layers, room) => {
  const longest = Math.min(24, Math.max(...layers.map((name) => name.length)));
  return longest * 6.6 < room ? 26 : 22 + longest * 4.6;
};

// Where columns stand that are `least` wide or wider; `beside` is kept free to their right.
function columns(node, layers, least, beside = 0) {
  const sides = MARGIN.left + MARGIN.right + beside;
  const inner = Math.max(node.clientWidth - sides, layers.length * least);
  const room = inner / layers.length;
  return { room, needed: inner + sides, centre: (i) => MARGIN.left + (i + 0.5) * room };
}

// Utilization ------------------------------------------------------------------------------------

function drawUtilization(node, report) {
  const { layers } = report.comparison, threads = report.threads;
  const titles = layers.map((layer) => layer.name);
  const { room, needed, centre } = columns(node, titles, 10 + 11 * threads.length, 54);
  const bottom = 268;
  const { svg, width } = frame(node, "Utilization per layer", needed, bottom + nameRoom(titles, room));
  const y = (share) => bottom - share * (bottom - MARGIN.top - 10);
  grid(svg, [0, 0.2, 0.4, 0.6, 0.8, 1], y, width, (share) => `${Math.round(100 * share)} %`);
  names(svg, titles, centre, bottom, room);
  const bar = Math.min(30, (0.78 * room) / threads.length);
  const marks = [];
  for (const [i, layer] of layers.entries()) {
    for (const [rank, v] of threads.entries()) {
      const share = layer.utilization[v];
      const x = centre(i) + (rank - threads.length / 2) * bar;
      const rect = shape("rect", { class: "bar", x, width: bar - 1, y: y(share), height: Math.max(0, bottom - y(share)),
        fill: threadColour(rank), "data-layer": layer.name, "data-threads": v });
      marks.push({ node: rect, lines: utilizationLines(report, layer, v) });
      svg.append(rect);
    }
    const bound = y(layer.compute_cycles / layer.bound_cycles);
    const half = (threads.length * bar) / 2 + 3;
    svg.append(shape("line", { x1: centre(i) - half, x2: centre(i) + half - 1, y1: bound, y2: bound,
      stroke: "var(--ink)", "stroke-width": 2, "pointer-events": "none" }));
    const vta = report.vta?.utilization[layer.name];
    if (vta !== undefined) {
      const diamond = shape("path", { d: `M${centre(i)} ${y(vta) - 5}l5 5l-5 5l-5-5z`, fill: "var(--card)",
        stroke: "var(--ink)", "stroke-width": 1.6, class: "vta" });
      marks.push({ node: diamond, lines: [`${layer.name}: ${percent(vta)} on open VTA`, report.vta.source] });
      svg.append(diamond);
    }
  }
  drawPeers(svg, report, y, width);
  explain(svg, marks);
}

// One schedule per layer, a bar per means of hiding latency.
function drawSame(node, same, variants) {
  const titles = same.layers.map((layer) => layer.name);
  const { room, needed, centre } = columns(node, titles, 10 + 9 * variants.length);
  const bottom = 268;
  const { svg, width } = frame(node, "Utilization of one schedule per layer", needed, bottom + nameRoom(titles, room));
  const y = (share) => bottom - share * (bottom - MARGIN.top - 10);
  grid(svg, [0, 0.2, 0.4, 0.6, 0.8, 1], y, width, (share) => `${Math.round(100 * share)} %`);
  names(svg, titles, centre, bottom, room);
  const bar = Math.min(24, (0.82 * room) / variants.length);
  const marks = same.layers.flatMap((layer, i) => variants.map((v, rank) => {
    const x = centre(i) + (rank - variants.length / 2) * bar;
    const top = y(layer.utilization[v]);
    const rect = shape("rect", { class: "bar", x, width: bar - 1, y: top, height: Math.max(0, bottom - top), fill: threadColour(rank) });
    svg.append(rect);
    return { node: rect, lines: [`${layer.name}: ${percent(layer.utilization[v])}, ${v}`,
      `${count(layer.cycles[v])} cycles`, layer.schedule] };
  }));
  explain(svg, marks);
}

// The paper's peaks, where it has this model, as dashed lines in the colours of no hiding and of two threads.
function drawPeers(svg, report, y, width) {
  const [paper] = report.peers;
  if (!paper) return;
  for (const [v, share] of [["1", paper.without], ["2", paper.hidden]]) {
    const rank = report.threads.indexOf(v);
    if (rank < 0) continue;
    svg.append(
      shape("line", { class: "peer", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(share), y2: y(share),
        stroke: rank ? threadColour(rank) : "var(--soft)", "stroke-width": 1.5, "stroke-dasharray": "5 4", "pointer-events": "none" }),
      shape("text", { class: "halo", x: width - 4, y: y(share) - 5, "text-anchor": "end" }, `OSDI ${percent(share, 0)}`));
  }
}

function utilizationLines(report, layer, v) {
  const details = report.layers[layer.name][v];
  return [
    `${layer.name}: ${percent(layer.utilization[v])} with ${threadsText(v)}`,
    `${count(layer.cycles[v])} cycles; the bound is ${count(layer.bound_cycles)}, set by ` +
      (layer.memory_cycles > layer.compute_cycles ? "memory" : "the multipliers"),
    `${(layer.macs / 1e6).toFixed(1)} million multiply-adds, ${count(layer.dram_bytes)} bytes of DRAM`,
    `${plural(details.instructions, "instruction")}; ${details.schedule}`,
  ];
}

// Work beside GEMM -------------------------------------------------------------------------------

const hiddenText = (work) => (work.cycles ? percent(work.hidden / work.cycles) : "–");

// Places for rows of columns, one row per engine; `tops` are the base lines, `bottom` the last one.
function engineRows(node, titles, engines, least, label) {
  const tall = 116, gap = 26;
  const { room, needed, centre } = columns(node, titles, least);
  const bottom = MARGIN.top + engines.length * (tall + gap);
  const { svg, width } = frame(node, label, needed, bottom + nameRoom(titles, room) - 8);
  const base = (row) => MARGIN.top + row * (tall + gap) + gap - 6 + tall;
  for (const [row, engine] of engines.entries()) {
    svg.append(shape("text", { class: "strong", x: MARGIN.left, y: base(row) - tall - 7 }, engine));
  }
  names(svg, titles, centre, bottom - 6, room);
  return { svg, width, room, centre, base, tall };
}

// One row of columns per engine, in it a bar per number of virtual threads.
function drawHiding(node, report) {
  const { layers, total } = report.comparison, { threads } = report;
  const engines = Object.keys(total.work[threads[0]]);
  const { svg, width, room, centre, base, tall } = engineRows(node, layers.map((layer) => layer.name), engines,
    10 + 11 * threads.length, "Work beside GEMM per engine and layer");
  const bar = Math.min(30, (0.78 * room) / threads.length), marks = [];
  for (const [row, engine] of engines.entries()) {
    const y = (share) => base(row) - share * tall;
    grid(svg, [0, 0.5, 1], y, width, (t) => `${100 * t} %`);
    for (const [i, layer] of layers.entries()) {
      for (const [rank, v] of threads.entries()) {
        const { cycles, hidden } = layer.work[v][engine];
        if (!cycles) continue;
        const x = centre(i) + (rank - threads.length / 2) * bar, top = y(hidden / cycles);
        const rect = shape("rect", { class: "bar", x, width: bar - 1, y: top, height: base(row) - top, fill: threadColour(rank),
          "data-engine": engine, "data-layer": layer.name, "data-threads": v });
        marks.push({ node: rect, lines: [`${layer.name}: ${percent(hidden / cycles)} of ${engine}’s work lies beside GEMM`,
          `${count(hidden)} of ${plural(cycles, "cycle")} with an instruction in flight`, `with ${threadsText(v)}`] });
        svg.append(rect);
      }
    }
  }
  explain(svg, marks);
}

// Causes -----------------------------------------------------------------------------------------

const CAUSES = {
  busy: "busy", token: "waits for a token", memory: "waits for memory", bank: "waits for a bank",
  fetch: "waits for fetch", drain: "waits for the end",
};

// One row of columns per engine; `scale` is "share" of the layer's cycles or "cycles".
function drawCauses(node, report, v, scale) {
  const titles = report.comparison.layers.map((layer) => layer.name);
  const engines = Object.keys(report.layers[titles[0]][v].causes);
  const { svg, width, room, centre, base, tall } = engineRows(node, titles, engines, 22, "Cycles by cause per engine and layer");
  const most = scale === "share" ? 1 : Math.max(...report.comparison.layers.flatMap((l) => Object.values(l.cycles)));
  const marks = [], wide = Math.min(34, 0.72 * room);
  for (const [row, engine] of engines.entries()) {
    const y = (value) => base(row) - (value / most) * tall;
    const ticks = scale === "share" ? [0, 0.5, 1] : [0, step(most, 2), 2 * step(most, 2)].filter((t) => t <= most);
    grid(svg, ticks, y, width, (t) => (scale === "share" ? `${100 * t} %` : short(t)));
    for (const [i, name] of titles.entries()) {
      const causes = report.layers[name][v].causes[engine];
      const cycles = sum(Object.values(causes));
      let from = 0;
      for (const [cause, n] of Object.entries(causes)) {
        const size = scale === "share" ? n / cycles : n;
        if (!n) continue;
        const rect = shape("rect", { class: "cause", x: centre(i) - wide / 2, width: wide, y: y(from + size),
          height: (size / most) * tall, fill: `var(--${cause})`, "data-cause": cause });
        marks.push({ node: rect, lines: [
          `${name}, ${engine}: ${CAUSES[cause]}`, `${count(n)} of ${count(cycles)} cycles: ${percent(n / cycles)}`,
          `with ${threadsText(v)}`] });
        svg.append(rect);
        from += size;
      }
    }
  }
  explain(svg, marks);
}

// Sweep ------------------------------------------------------------------------------------------

// What a point of the sweep says of a layer, or of all with layer "".
function pointOf(point, layer) {
  return layer ? point.layers.find((each) => each.name === layer) : point.total;
}

// What the height of the sweep's curves can be.
const SWEEPS = {
  utilization: { of: (own, v) => own.utilization[v], text: (n) => percent(n), tick: (n) => percent(n, 0) },
  cycles: { of: (own, v) => own.cycles[v], text: short, tick: short },
  growth: { of: (own, v, first) => own.cycles[v] / first.cycles[v] - 1, text: (n) => `${n < 0 ? "−" : "+"}${percent(Math.abs(n))}`, tick: (n) => percent(n, n && n < 0.1 ? 1 : 0) },
};

function drawSweep(node, report, layer, scale) {
  const points = [...report.sweep.sweep].sort((a, b) => a.latency - b.latency);
  const first = pointOf(points[0], layer), kind = SWEEPS[scale];
  const height = 290, bottom = height - 44;
  const { svg, width } = frame(node, "Latency hiding over memory latency", 300, height);
  const value = (point, v) => kind.of(pointOf(point, layer), v, first);
  const all = points.flatMap((point) => report.threads.map((v) => value(point, v)));
  const low = Math.min(0, ...all), high = scale === "utilization" ? 1 : Math.max(0.01, ...all) * 1.08;
  const right = width - MARGIN.right - 76, last = Math.max(points.at(-1).latency, 1);
  const x = (latency) => MARGIN.left + 12 + (latency / last) * (right - MARGIN.left - 12);
  const y = (n) => bottom - ((n - low) / (high - low)) * (bottom - MARGIN.top);
  const by = step(high - low, 5), ticks = [];
  for (let tick = Math.ceil(low / by); tick * by <= high * 1.0001; tick++) ticks.push(tick * by);
  grid(svg, ticks, y, width, kind.tick);
  let written = -99;
  for (const { latency } of points) {
    if (x(latency) - written < 30) continue;
    written = x(latency);
    svg.append(shape("text", { x: x(latency), y: bottom + 18, "text-anchor": "middle" }, count(latency)));
  }
  svg.append(shape("text", { x: (MARGIN.left + right) / 2, y: bottom + 38, "text-anchor": "middle" },
    "cycles from a read request to its first data"));
  const marks = [], ends = [];
  for (const [rank, v] of report.threads.entries()) {
    const path = points.map((point, i) => `${i ? "L" : "M"}${x(point.latency)} ${y(value(point, v))}`).join("");
    svg.append(shape("path", { class: "curve", d: path, fill: "none", stroke: threadColour(rank), "stroke-width": 2.4 }));
    for (const point of points) {
      const dot = shape("circle", { cx: x(point.latency), cy: y(value(point, v)), r: 4.5, fill: threadColour(rank) });
      const own = pointOf(point, layer);
      marks.push({ node: dot, lines: [
        `${layer || "All layers"}: ${percent(own.utilization[v])} with ${threadsText(v)}`,
        `${count(own.cycles[v])} cycles behind ${count(point.latency)} cycles of latency, ` +
          `${SWEEPS.growth.text(SWEEPS.growth.of(own, v, first))} over ${count(points[0].latency)}`] });
      svg.append(dot);
    }
    ends.push({ at: y(value(points.at(-1), v)) + 4, text: `${v}: ${kind.text(value(points.at(-1), v))}` });
  }
  ends.sort((a, b) => a.at - b.at).forEach((end, i) => { // labels keep clear of one another
    if (i) end.at = Math.max(end.at, ends[i - 1].at + 14);
    svg.append(shape("text", { class: "strong", x: right + 10, y: end.at }, end.text));
  });
  explain(svg, marks);
}
