// One network on several designs: time, utilization and causes, layer by layer.

const report = readJson("data");
const { designs, layers, differences } = report.sideBySide;
const labels = designs.map((design) => design.label);
const titles = layers.map((layer) => layer.name);
const own = (place, name) => report.layers[place][name];
const milliseconds = (value) => `${value >= 10 ? value.toFixed(1) : +value.toPrecision(3)} ms`;
const clocks = labels.map((label, place) => `${label} ${report.machines[place].clock}`).join(", ");
const times = (ratio) => `${ratio.toFixed(2)} ×`;

// The first design that isn't the first, as a sentence about the whole.
function headerSection() {
  const [first, second] = designs;
  byId("headline").replaceChildren(...(second.ratio === null
    ? [`${report.model}: no layer that all designs run`]
    : [`${report.model} on ${second.label} takes `, element("b", {}, percent(second.ratio)), ` of ${first.label}’s time`]));
  document.querySelector(".kicker").textContent = `Side by side · ${report.model}`;
  const all = report.common.length === titles.length ? "" : ` of ${titles.length} that all designs run`;
  byId("lead").textContent = `${plural(report.common.length, "layer")}${all}: ` + designs.map((design, place) =>
    `${milliseconds(design.milliseconds)} on ${design.label} ${report.machines[place].clock}`).join(", ") + ".";
  byId("figures").replaceChildren(...designs.map((design, place) => element("div", {},
    element("dt", {}, design.label),
    element("dd", {}, milliseconds(design.milliseconds)),
    element("small", {}, `${report.machines[place].block} multipliers ${report.machines[place].clock}; ` +
      `${report.machines[place].peak_gops} GOPS; memory ${report.machines[place].memory}`),
    element("small", {}, report.endToEnd[place] ?? ""))));
  byId("origin").textContent = `vdla ${report.version}. The cycles are the simulator’s, which are the RTL’s. ` +
    "This file holds all its data and asks no server for anything.";
  byId("data-save").addEventListener("click", () =>
    save(`${report.model}-${labels.join("-")}.json`, JSON.stringify(report.sideBySide)));
}

function differenceSection() {
  const rows = Object.entries(differences).map(([key, values]) =>
    [key, ...labels.map((label) => (values[label] === null ? "–" : `${values[label]}`))]);
  table(byId("difference-table"), ["parameter", ...labels], rows.length ? rows : [["none", ...labels.map(() => "")]]);
}

// A column per layer and design; `value` and `lines` are of a design's layer, `bound` may be null.
function drawBars(node, label, { value, bound, most, text, ticks, lines }) {
  const { room, needed, centre } = columns(node, titles, 10 + 11 * labels.length);
  const bottom = 268;
  const { svg, width } = frame(node, label, needed, bottom + nameRoom(titles, room));
  const y = (height) => bottom - (height / most) * (bottom - MARGIN.top - 10);
  grid(svg, ticks, y, width, text);
  names(svg, titles, centre, bottom, room);
  const bar = Math.min(30, (0.78 * room) / labels.length), marks = [];
  for (const [i, name] of titles.entries()) {
    for (const [place, design] of labels.entries()) {
      if (!own(place, name)) continue;
      const x = centre(i) + (place - labels.length / 2) * bar, top = y(value(place, name));
      const rect = shape("rect", { class: "bar", x, width: bar - 1, y: top, height: Math.max(0, bottom - top),
        fill: threadColour(place), "data-layer": name, "data-design": design });
      marks.push({ node: rect, lines: lines(place, name) });
      svg.append(rect);
      const least = bound?.(place, name);
      if (least !== undefined) {
        svg.append(shape("line", { x1: x - 1, x2: x + bar, y1: y(least), y2: y(least), stroke: "var(--ink)",
          "stroke-width": 2, "pointer-events": "none" }));
      }
    }
  }
  explain(svg, marks);
}

function linesOf(place, name) {
  const figures = own(place, name), layer = layers[titles.indexOf(name)];
  const { [labels[place]]: time } = layer.milliseconds, { [labels[place]]: ratio } = layer.ratio;
  return [
    `${name} on ${labels[place]}: ${milliseconds(time)}` + (place && ratio ? `, ${times(ratio)} that of ${labels[0]}` : ""),
    `${count(figures.cycles)} cycles; the bound is ${count(figures.bound)}, set by ${figures.by === "memory" ? "memory" : "the multipliers"}`,
    `utilization ${percent(figures.utilization)}`,
    figures.schedule,
  ];
}

function timeSection() {
  const time = (place, name) => own(place, name).cycles / designs[place].clock_mhz / 1e3;
  const bound = (place, name) => own(place, name).bound / designs[place].clock_mhz / 1e3;
  const most = Math.max(...labels.flatMap((_, place) => titles.filter((name) => own(place, name)).map((name) => time(place, name))));
  const by = step(most, 5);
  const ticks = Array.from({ length: Math.floor(most / by) + 1 }, (_, i) => i * by);
  legend(byId("time-legend"), labels.map((label, place) => [`${label} ${report.machines[place].clock}`, threadColour(place)]));
  drawBars(byId("time-chart"), `Milliseconds per layer: ${clocks}`,
    { value: time, bound, most, text: (t) => `${+t.toPrecision(3)} ms`, ticks, lines: linesOf });
}

function shareSection() {
  legend(byId("share-legend"), labels.map((label, place) => [label, threadColour(place)]));
  drawBars(byId("share-chart"), "Utilization per layer", { value: (place, name) => own(place, name).utilization,
    most: 1, text: (t) => percent(t, 0), ticks: [0, 0.2, 0.4, 0.6, 0.8, 1], lines: linesOf });
}

// The shares of an engine's causes, a column per layer and design.
function drawEngine(node, engine) {
  const { room, needed, centre } = columns(node, titles, 10 + 13 * labels.length);
  const bottom = 250;
  const { svg, width } = frame(node, `Causes of ${engine}’s cycles per layer`, needed, bottom + nameRoom(titles, room));
  const y = (share) => bottom - share * (bottom - MARGIN.top - 10);
  grid(svg, [0, 0.5, 1], y, width, (t) => percent(t, 0));
  names(svg, titles, centre, bottom, room);
  const bar = Math.min(30, (0.78 * room) / labels.length), marks = [];
  for (const [i, name] of titles.entries()) {
    for (const [place, label] of labels.entries()) {
      const causes = own(place, name)?.causes[engine];
      if (!causes) continue;
      const cycles = sum(Object.values(causes)), x = centre(i) + (place - labels.length / 2) * bar;
      let from = 0;
      for (const [cause, n] of Object.entries(causes).filter(([, n]) => n)) {
        const rect = shape("rect", { class: "cause", x, width: bar - 2, y: y(from + n / cycles),
          height: y(from) - y(from + n / cycles), fill: `var(--${cause})` });
        marks.push({ node: rect, lines: [`${name} on ${label}, ${engine}: ${CAUSES[cause]}`,
          `${count(n)} of ${count(cycles)} cycles: ${percent(n / cycles)}`] });
        svg.append(rect);
        from += n / cycles;
      }
    }
  }
  explain(svg, marks);
}

function causesSection() {
  const engines = [...new Set(report.layers.flatMap((each) => Object.values(each).flatMap((layer) => Object.keys(layer.causes))))];
  legend(byId("causes-legend"), Object.entries(CAUSES).map(([cause, text]) => [text, `var(--${cause})`]));
  choices(byId("causes-engine"), engines.map((engine) => [engine, engine]), engines.includes("COMPUTE") ? "COMPUTE" : engines[0],
    (engine) => drawEngine(byId("causes-chart"), engine));
}

function figuresSection() {
  const cell = (value, text) => (value === null || value === undefined ? "–" : text(value));
  const others = labels.slice(1);
  const rows = layers.map((layer) => [layer.name,
    ...labels.map((_, place) => cell(own(place, layer.name)?.cycles, count)),
    ...labels.map((label) => cell(layer.milliseconds[label], (ms) => ms.toFixed(3))),
    ...labels.map((_, place) => cell(own(place, layer.name)?.utilization, percent)),
    ...others.map((label) => cell(layer.ratio[label], (ratio) => ratio.toFixed(2)))]);
  rows.push(["all", ...designs.map((design) => count(Object.values(design.total.cycles).at(-1))),
    ...designs.map((design) => design.accelerator_ms.toFixed(3)),
    ...designs.map((design) => percent(Object.values(design.total.utilization).at(-1))),
    ...designs.slice(1).map((design) => cell(design.ratio, (ratio) => ratio.toFixed(2)))]);
  table(byId("figures-table"), ["layer", ...labels.map((label) => `cycles, ${label}`), ...labels.map((label) => `ms, ${label}`),
    ...labels.map((label) => `utilization, ${label}`), ...others.map((label) => `${label} / ${labels[0]}`)], rows, true);
}

function hostSection() {
  const names = [...new Set(report.host.flatMap((each) => Object.keys(each)))];
  byId("host").hidden = !names.length;
  table(byId("host-table"), ["operator", ...labels], names.map((name) =>
    [name, ...report.host.map((each) => each[name] ?? "on the accelerator")]));
}

function drawSections() {
  timeSection();
  shareSection();
}

headerSection();
differenceSection();
drawSections();
causesSection();
figuresSection();
hostSection();
addEventListener("resize", drawSections);
