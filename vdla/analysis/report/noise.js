// Noise of a quantization: three signal-to-noise ratios for each layer, in dB.

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
  byId("data-save").addEventListener("click", () => save(`${report.model}-noise.json`, JSON.stringify({ layers })));
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

function figuresSection() {
  const rows = [...layers].sort((a, b) => (a.own ?? Infinity) - (b.own ?? Infinity));
  table(byId("figures-table"), ["layer", "operator", ...KINDS.map(([, label]) => label)],
    rows.map((layer) => [layer.name, layer.op, ...KINDS.map(([kind]) => decibels(layer[kind]))]));
}

headerSection();
noiseSection();
figuresSection();
addEventListener("resize", noiseSection);
