// The page of a search for designs: fronts, parallel coordinates, the chosen design.

const report = readJson("data");
const { designs, baseline, metrics, parameters } = report;
let chosen = designs[0];

const estimated = designs.some((design) => design.mapped) ? "estimated, of the front by yosys" : "estimated";
const TITLES = {
  cycles: `cycles of ${report.models.join(" and ")}`, ms: `ms (clock ${report.clock})`, luts: `LUTs (${estimated})`, ffs: `flip-flops (${estimated})`, dsps: "DSPs",
  brams: "block RAMs", energy: `energy in µJ by ${report.energy}`, buffer_bytes: "bytes of buffers",
};
const title = (name) => TITLES[name] ?? name.replaceAll("_", " ");
const both = (names) => names.map(title).join(" and ");
const shown = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en-US"));
const signed = (factor) => factor === 1 ? "equal" : `${factor >= 1 ? "+" : "−"}${(100 * Math.abs(factor - 1)).toFixed(1)} %`;
const settings = (design) =>
  parameters.map(({ name, values }, axis) => `${name} = ${shown(values[design.point[axis]])}`);

// A logarithmic scale that has room for zeros, with a margin on both sides.
function logarithmic(values, from, to) {
  const logs = values.map((value) => Math.log(1 + value));
  const low = Math.min(...logs), high = Math.max(...logs), margin = 0.06 * (high - low || 1);
  return (value) => from + ((Math.log(1 + value) - low + margin) / (high - low + 2 * margin)) * (to - from);
}

// Round values within a range: powers of ten times 1, 2, 5, or evenly spaced where these are few.
function ticks(values) {
  const low = Math.min(...values), high = Math.max(...values), result = [];
  for (let power = 1; power <= high * 10; power *= 10) {
    result.push(...[1, 2, 5].map((f) => f * power).filter((t) => t >= low && t <= high));
  }
  if (result.length > 2) return result.length > 8 ? result.filter((t) => /^1/.test(t)) : result;
  const by = step(high - low || 1, 8);
  return [0, 1, 2, 3, 4, 5, 6, 7, 8].map((n) => (Math.ceil(low / by) + n) * by).filter((t) => t <= high);
}

const colourOf = (share) => `color-mix(in oklab, var(--t4) ${Math.round(100 * share)}%, var(--t1))`;

// Whether a design is as good as another in all objectives of the search, and better in one.
function beats(one, other) {
  const pairs = report.objectives.map((name) => [one.metrics[name], other.metrics[name]]);
  return pairs.every(([a, b]) => a !== null && a <= b) && pairs.some(([a, b]) => a < b);
}

// A value and the baseline's: less is better, and the same is the same.
function beside(value, other) {
  const name = `baseline ${baseline.name}`;
  if (!other) return `${name}: –`;
  return value === other ? `as the ${name}` : `${signed(value / other)} beside the ${name}: ${shown(other)}`;
}

// How the chosen design stands to the baseline, in words.
function verdict(design) {
  const kinds = { better: [], equal: [], worse: [] };
  for (const name of report.objectives) {
    const [mine, other] = [design.metrics[name], baseline.metrics[name]];
    if (mine !== null && other) kinds[mine < other ? "better" : mine === other ? "equal" : "worse"].push(title(name));
  }
  const said = [["Better than the baseline in", kinds.better], ["equal in", kinds.equal], ["worse in", kinds.worse]]
    .filter(([, names]) => names.length).map(([words, names]) => `${words} ${names.join(" and ")}`).join("; ");
  return said && `${said[0].toUpperCase()}${said.slice(1)}.`;
}

function headerSection() {
  const front = designs.filter((design) => design.front).length;
  const simulated = report.levels.find((each) => each.level === "exact").seen;
  byId("headline").textContent = report.title;
  const beaten = designs.filter((design) => design.front && beats(baseline, design)).length;
  document.querySelector(".kicker").textContent = report.space;
  byId("lead").textContent = `${plural(simulated, "design")} simulated in ${count(report.seconds)} s. ` +
    `${count(front)} of them make the front: no other design beats them in ${both(report.objectives)}.` +
    (beaten ? ` The baseline ${baseline.name}${baseline.inside ? "" : ", which lies outside the space,"} beats ${count(beaten)} of these.` : "");
  byId("area").textContent = report.area;
  const best = report.objectives.map((name) => {
    const values = designs.map((design) => design.metrics[name]), least = Math.min(...values);
    return [`least ${title(name)}`, values.length ? shown(least) : "–", values.length ? beside(least, baseline.metrics[name]) : ""];
  });
  byId("figures").append(...best.map(([name, value, remark]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value, element("small", {}, remark)))));
  byId("origin").textContent = `vdla ${report.version}. The cycles are the simulator’s, which are the RTL’s. ` +
    "This file holds all its data and asks no server for anything.";
}

// Fronts -----------------------------------------------------------------------------------------

function pickers() {
  const start = [metrics[0], metrics[1] ?? metrics[0], metrics[2] ?? metrics[0]];
  ["front-x", "front-y", "front-colour"].forEach((id, i) => {
    byId(id).append(...metrics.map((name) => element("option", { value: name }, title(name))));
    byId(id).value = start[i];
    byId(id).addEventListener("change", drawFront);
  });
  byId("front-only").addEventListener("change", drawFront);
}

function tipOf(design) {
  const values = metrics.map((name) => `${title(name)} ${shown(design.metrics[name])}`).join(", ");
  const layers = Object.values(design.layers).flatMap((own) => Object.entries(own));
  const longest = layers.sort((a, b) => b[1] - a[1]).slice(0, 4).map(([name, n]) => `${name} ${count(n)}`);
  return [design.name, values, `clock ${design.clock}`, ...(design.point ? [settings(design).join(", ")] : []), `cycles of ${longest.join(", ")}${layers.length > 4 ? ", …" : ""}`];
}

function drawFront() {
  const [across, up, colour] = ["front-x", "front-y", "front-colour"].map((id) => byId(id).value);
  const kept = designs.filter((design) => design.front || !byId("front-only").checked);
  const all = [...kept, ...(baseline.legal ? [baseline] : [])];
  const of = (name) => all.map((each) => each.metrics[name]).filter((value) => value !== null);
  const height = 420, bottom = height - 46;
  const { svg, width } = frame(byId("front-chart"), `${title(up)} over ${title(across)}`, 320, height);
  if (!all.length) return;
  const x = logarithmic(of(across), MARGIN.left + 10, width - MARGIN.right);
  const y = logarithmic(of(up), bottom, MARGIN.top + 14);
  const shade = logarithmic(of(colour), 0, 1);
  grid(svg, ticks(of(up)), y, width, short);
  for (const t of ticks(of(across))) {
    svg.append(
      shape("line", { class: "grid", x1: x(t), x2: x(t), y1: MARGIN.top, y2: bottom }),
      shape("text", { x: x(t), y: bottom + 18, "text-anchor": "middle" }, short(t)));
  }
  svg.append(
    shape("text", { x: (MARGIN.left + width) / 2, y: bottom + 38, "text-anchor": "middle" }, title(across)),
    shape("text", { x: 4, y: MARGIN.top }, title(up)));
  const marks = [];
  if (baseline.legal && baseline.metrics[across] !== null && baseline.metrics[up] !== null) {
    const [bx, by] = [x(baseline.metrics[across]), y(baseline.metrics[up])];
    const diamond = shape("path", { d: `M${bx} ${by - 11}l11 11l-11 11l-11-11z`, fill: "var(--card)", stroke: "var(--ink)", "stroke-width": 1.8 });
    marks.push({ node: diamond, lines: tipOf({ ...baseline, name: `baseline ${baseline.name}` }) });
    svg.append(diamond);
  }
  for (const design of [...kept].sort((a, b) => Boolean(a.front) - Boolean(b.front))) {
    const dot = shape("circle", { class: "design", cx: x(design.metrics[across]), cy: y(design.metrics[up]),
      r: design === chosen ? 8 : design.front ? 6 : 4, fill: colourOf(shade(design.metrics[colour])),
      stroke: design.front ? "var(--ink)" : "var(--card)", "stroke-width": design === chosen ? 3 : design.front ? 1.6 : 0.6,
      "data-name": design.name });
    dot.addEventListener("click", () => choose(design));
    marks.push({ node: dot, lines: tipOf(design), design });
    svg.append(dot);
  }
  explain(svg, marks);
  svg.addEventListener("keydown", (event) => {
    const mark = marks.find(({ node }) => node.classList.contains("on"));
    if (event.key === "Enter" && mark?.design) choose(mark.design);
  });
  const ends = of(colour);
  legend(byId("front-legend"), [
    [`least ${title(colour)}: ${short(Math.min(...ends))}`, colourOf(0)],
    [`most: ${short(Math.max(...ends))}`, colourOf(1)],
    [`baseline ${baseline.name}${baseline.inside ? "" : ", outside the space"}`, "", "diamond"]]);
}

// The chosen design ------------------------------------------------------------------------------

function choose(design) {
  chosen = design;
  drawFront();
  drawParallel();
  byId("chosen-name").textContent = design.name;
  byId("chosen-verdict").textContent = verdict(design);
  byId("chosen-command").textContent = design.command;
  byId("copied").textContent = "";
  const rows = metrics.map((name) => {
    const [mine, other] = [design.metrics[name], baseline.metrics[name]];
    return [title(name), shown(mine), shown(other), mine && other ? signed(mine / other) : "–"];
  });
  rows.push(["clock", design.clock, baseline.clock, design.clock === baseline.clock ? "equal" : ""]);
  const models = Object.keys(design.models);
  if (models.length > 1) {
    rows.push(...models.map((model) => [`cycles of ${model}`, shown(design.models[model]), shown(baseline.models[model]),
      baseline.models[model] ? signed(design.models[model] / baseline.models[model]) : "–"]));
  }
  rows.push(...parameters.map(({ name, values }, axis) => [title(name), shown(values[design.point[axis]]), shown(baseline.parameters[name]),
    values[design.point[axis]] === baseline.parameters[name] ? "equal" : ""]));
  table(byId("chosen-table"), ["value", design.name, baseline.name, "difference"], rows);
  const layers = Object.entries(design.layers).flatMap(([model, own]) => Object.entries(own).map(([layer, n]) => {
    const other = baseline.layers[model]?.[layer];
    return [models.length > 1 ? `${model}: ${layer}` : layer, count(n), shown(other), other ? signed(n / other) : "–"];
  }));
  table(byId("chosen-layers"), ["layer", design.name, baseline.name, "difference"], layers);
}

// Copies by way of a selection where the clipboard is refused to files.
async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = element("textarea", { "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  byId("copied").textContent = `Copied the ${what} of ${chosen.name}.`;
}

// Parallel coordinates ---------------------------------------------------------------------------

function drawParallel() {
  const axes = [
    ...parameters.map(({ name, values }, axis) => ({ name, of: (design) => design.point[axis] / Math.max(values.length - 1, 1),
      low: values[0], high: values[values.length - 1] })),
    ...report.objectives.map((name) => {
      const values = designs.map((design) => design.metrics[name]);
      const scale = logarithmic(values, 0, 1);
      return { name, of: (design) => scale(design.metrics[name]), low: Math.min(...values), high: Math.max(...values) };
    })];
  const height = 320, bottom = height - 44;
  const { svg, width } = frame(byId("parallel-chart"), "Parallel coordinates", 90 * axes.length, height);
  const at = (i) => 52 + (i * (width - 104)) / Math.max(axes.length - 1, 1);
  const y = (share) => bottom - share * (bottom - 34);
  axes.forEach((axis, i) => svg.append(
    shape("line", { class: "axis", x1: at(i), x2: at(i), y1: y(0), y2: y(1) }),
    shape("text", { class: "strong", x: at(i), y: bottom + 34, "text-anchor": "middle" }, title(axis.name).split(/ [(]| by /)[0]),
    shape("text", { x: at(i), y: bottom + 17, "text-anchor": "middle" }, short(axis.low)),
    shape("text", { x: at(i), y: 24, "text-anchor": "middle" }, short(axis.high))));
  const rank = (design) => (design === chosen ? 2 : design.front ? 1 : 0);
  const marks = [];
  for (const design of [...designs].sort((a, b) => rank(a) - rank(b))) {
    const d = axes.map((axis, i) => `${i ? "L" : "M"}${at(i)} ${y(axis.of(design))}`).join("");
    const line = shape("path", { d, fill: "none", class: "line", stroke: design === chosen ? "var(--t6)" : design.front ? "var(--t1)" : "var(--t0)",
      "stroke-width": [1, 1.6, 3.5][rank(design)], opacity: design.front || design === chosen ? 0.9 : 0.3, "data-name": design.name });
    line.addEventListener("click", () => choose(design));
    marks.push({ node: line, lines: tipOf(design) });
    svg.append(line);
  }
  explain(svg, marks);
}

// Tables -----------------------------------------------------------------------------------------

function tables() {
  const effects = parameters.map(({ name, values }) => [
    title(name), shown(values[0]), shown(values[values.length - 1]),
    ...report.objectives.map((objective) => `${report.sensitivity[name][objective].toFixed(2)} ×`)]);
  table(byId("sensitivity-table"), ["parameter", "from", "to", ...report.objectives.map(title)], effects);
  const levels = report.levels.flatMap(({ level, seen, pruned }) => {
    const rows = Object.entries(pruned).filter(([, n]) => n).sort((a, b) => b[1] - a[1]);
    return rows.length ? rows.map(([why, n]) => [level, count(seen), count(n), why]) : [[level, count(seen), "0", ""]];
  });
  table(byId("levels-table"), ["level", "designs", "pruned", "reason"], levels);
}

headerSection();
tables();
pickers();
byId("copy-toml").addEventListener("click", () => copy(chosen.toml, "TOML"));
byId("copy-command").addEventListener("click", () => copy(chosen.command, "command"));
if (chosen) choose(chosen);
else for (const id of ["fronts", "chosen", "parallel"]) byId(id).hidden = true;
