// Noise of a quantization: three signal-to-noise ratios for each layer, in dB; and, of a search, its recipes.

const report = readJson("data");
const { layers } = report;
const KINDS = [["network", "in the network"], ["own", "of the layer alone"], ["weights", "of its weights"]];
const titles = layers.map((layer) => layer.name);
const decibels = (value) => (value === null ? "–" : `${value.toFixed(1)} dB`);

function headerSection() {
  const last = layers[layers.length - 1];
  byId("headline").replaceChildren(`${report.model}: `, element("b", {}, decibels(last.network)), ` at ${last.name}`);
  document.querySelector(".kicker").textContent = `Quantization · ${report.model}`;
  byId("lead").textContent = `${plural(layers.length, "layer")}, ${plural(report.samples, "sample")} of ${report.calibration}.`;
  byId("origin").textContent = `vdla ${report.version}. onnxruntime ran the floats and what its quantizer made of them, ` +
    "without fused operators. This file holds all its data and asks no server for anything.";
  byId("data-save").addEventListener("click", () => save(`${report.model}-noise.json`, JSON.stringify({ layers, frontier: report.frontier })));
}

function noiseSection() {
  const node = byId("noise-chart");
  const most = Math.max(10, ...layers.flatMap((layer) => KINDS.map(([kind]) => layer[kind] ?? 0)));
  const by = step(most, 6), bottom = 268;
  const ticks = Array.from({ length: Math.floor(most / by) + 1 }, (_, i) => i * by);
  const { room, needed, centre } = columns(node, titles, 34);
  const { svg, width } = frame(node, "Signal-to-noise ratios per layer", needed, bottom + nameRoom(titles, room));
  const y = (value) => bottom - (Math.max(0, value) / most) * (bottom - MARGIN.top - 10);
  legend(byId("noise-legend"), KINDS.map(([, label], rank) => [label, threadColour(rank)]));
  grid(svg, ticks, y, width, (value) => `${value} dB`);
  names(svg, titles, centre, bottom, room);
  const bar = Math.min(20, (0.8 * room) / KINDS.length);
  const marks = layers.flatMap((layer, i) => KINDS.flatMap(([kind], rank) => {
    if (layer[kind] === null) return [];
    const top = y(layer[kind]);
    const rect = shape("rect", { class: "bar", x: centre(i) + (rank - KINDS.length / 2) * bar, width: bar - 1, y: top,
      height: Math.max(0, bottom - top), fill: threadColour(rank), "data-layer": layer.name, "data-kind": kind });
    svg.append(rect);
    return [{ node: rect, lines: [`${layer.name}, ${layer.op}`,
      ...KINDS.map(([each, label]) => `${decibels(layer[each])} ${label}`)] }];
  }));
  explain(svg, marks);
}

// A point for each recipe of a search: cycles to the right, score upwards, and a line at what was wanted.
function frontierSection() {
  const { frontier } = report;
  if (!frontier) return;
  byId("frontier").hidden = false;
  const { points, wanted, unit, config } = frontier, node = byId("frontier-chart"), bottom = 268;
  const chosen = points.find((point) => point.chosen);
  const score = (value) => `${value.toFixed(2)} ${unit}`;
  byId("frontier-lead").textContent = `${plural(points.length, "recipe")} in the order of their cost, ` +
    `the line is what was wanted: ${score(wanted)}. Written: ${chosen.recipe}, ${score(chosen.score)}, ` +
    `${count(chosen.cycles)} cycles on ${config}.`;
  const { svg, width } = frame(node, `Score against cycles on ${config}`, 480, bottom + 40);
  const scores = [...points.map((point) => point.score), wanted], cycles = points.map((point) => point.cycles);
  const [low, high, most] = [Math.min(...scores), Math.max(...scores), Math.max(...cycles, 1)];
  const margin = 0.1 * (high - low || 1), by = step(high - low || 1, 5), across = step(most, 5);
  const y = (value) => bottom - ((value - low + margin) / (high - low + 2 * margin)) * (bottom - MARGIN.top - 10);
  const x = (value) => MARGIN.left + 14 + (value / most) * (width - MARGIN.left - MARGIN.right - 60);
  const first = Math.ceil((low - margin) / by);
  grid(svg, Array.from({ length: Math.floor((high + margin) / by) - first + 1 }, (_, i) => (first + i) * by), y, width,
    (value) => `${Number(value.toPrecision(6))}`);
  svg.append(shape("line", { x1: MARGIN.left, x2: width - MARGIN.right, y1: y(wanted), y2: y(wanted), class: "wanted",
    stroke: "var(--ink)", "stroke-dasharray": "5 4", "pointer-events": "none" }));
  for (let value = 0; value <= most; value += across) {
    svg.append(shape("text", { x: x(value), y: bottom + 20, "text-anchor": "middle" }, short(value)));
  }
  svg.append(shape("text", { x: width - MARGIN.right, y: bottom + 36, "text-anchor": "end" }, `cycles on ${config}`));
  const marks = points.map((point) => {
    const dot = shape("circle", { cx: x(point.cycles), cy: y(point.score), r: point.chosen ? 8 : 5, class: "recipe",
      fill: threadColour(point.chosen ? 1 : 0), stroke: "var(--card)", "stroke-width": 1.5, "data-recipe": point.recipe });
    svg.append(dot);
    return { node: dot, lines: [point.chosen ? `${point.recipe} (written)` : point.recipe, score(point.score),
      `${count(point.cycles)} cycles`, `${count(point.bytes)} bytes of weights`, `${plural(point.bits16, "tensor")} of 16 bits`] };
  });
  explain(svg, marks);
}

function figuresSection() {
  const rows = [...layers].sort((a, b) => (a.own ?? Infinity) - (b.own ?? Infinity));
  table(byId("figures-table"), ["layer", "operator", ...KINDS.map(([, label]) => label)],
    rows.map((layer) => [layer.name, layer.op, ...KINDS.map(([kind]) => decibels(layer[kind]))]));
}

headerSection();
frontierSection();
noiseSection();
figuresSection();
addEventListener("resize", () => {
  frontierSection();
  noiseSection();
});
