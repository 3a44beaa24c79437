// The page, section by section, from the data in it.

const report = readJson("data");
report.threads = Object.keys(report.comparison.total.cycles);

const { total, layers } = report.comparison;
const plain = report.threads[0];
const best = report.threads.reduce((a, b) => (total.cycles[b] < total.cycles[a] ? b : a));
const compared = report.threads.length > 1;
const threadEntries = report.threads.map((v, rank) => [threadsText(v), threadColour(rank)]);
const threadOptions = report.threads.map((v) => [v, v]);
const redraws = [];

// Draws now and whenever the page's width changes.
function chart(draw) {
  redraws.push(draw);
  draw();
}

// Header -----------------------------------------------------------------------------------------

function causeShare(v, engine, cause) {
  const runs = layers.map((layer) => report.layers[layer.name][v].causes[engine]);
  return sum(runs.map((causes) => causes[cause])) / total.cycles[v];
}

// How much of each engine's work GEMM hides, as a phrase.
function hiddenPhrase(v) {
  const parts = Object.entries(total.work[v]).filter(([, work]) => work.cycles).map(([engine, work]) =>
    `${hiddenText(work)} of ${engine}’s`);
  return parts.length > 1 ? `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}` : parts[0];
}

function drawHeader() {
  document.querySelector(".kicker").textContent = `Latency hiding · ${report.model} on ${report.machine.name}`;
  const strong = (share) => element("b", {}, percent(share));
  const headline = byId("headline");
  if (compared) {
    headline.replaceChildren("Latency hiding lifts utilization from ", strong(total.utilization[plain]), " to ", strong(total.utilization[best]));
    byId("lead").textContent =
      `${threadsText(plain)} spends ${percent(causeShare(plain, "COMPUTE", "token"))} of the cycles with COMPUTE waiting ` +
      `for a token; with ${best} it is ${percent(causeShare(best, "COMPUTE", "token"))}, and ${hiddenPhrase(best)} ` +
      `work lies beside GEMM. Memory answers after ` +
      `${plural(report.machine.latency, "cycle")}, and the schedule of each is the best the compiler finds for it.`;
  } else {
    headline.replaceChildren(strong(total.utilization[plain]), ` of peak with ${threadsText(plain)}`);
  }
  const top = (v) => layers.reduce((a, b) => (b.utilization[v] > a.utilization[v] ? b : a));
  const figures = [
    ...report.threads.map((v) => [threadsText(v), `${short(total.cycles[v])}`, `cycles; ${percent(total.utilization[v])} of peak`]),
    ...(compared ? [["Speed-up", `${(total.cycles[plain] / total.cycles[best]).toFixed(2)}×`, `${threadsText(best)} over ${plain}`]] : []),
    ["Bound", short(total.bound_cycles), `cycles; ${percent(total.bound_cycles / total.cycles[best])} of it attained`],
    ["Best layer", percent(top(best).utilization[best]), `${top(best).name}, ${threadsText(best)}`],
    ...endToEndFigures(),
  ];
  byId("figures").replaceChildren(...figures.map(([name, value, remark]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value, element("small", {}, remark)))));
  machineFacts(report.machine);
  byId("origin").textContent = `vdla ${report.version}. Layers run alone and cold on the cycle simulator, whose ` +
    "cycles are the RTL’s. This file holds all its data and asks no server for anything.";
}

// Host, transfers and accelerator of an inference, one after another; the host's time is modelled.
function endToEndFigures() {
  const whole = report.endToEnd;
  if (!whole) return [];
  const ms = (value) => `${value.toFixed(2)} ms`;
  return [["End to end", ms(whole.total_ms),
    `host ${ms(whole.host_ms)} (${whole.host}, modelled), transfers ${ms(whole.transfer_ms)}, ` +
    `accelerator ${ms(whole.accelerator_ms)} ${report.machine.clock}`]];
}

function drawContents() {
  const sections = [...document.querySelectorAll("section")].filter((section) => !section.hidden);
  byId("contents").replaceChildren(...sections.map((section) => {
    const title = { utilization: "Utilization", same: "One schedule", hiding: "Work beside GEMM", causes: "Causes", roofline: "Roofline", sweep: "Slower memory",
      timeline: "Timeline", placement: "Placement" }[section.id];
    return element("a", { href: `#${section.id}` }, title);
  }));
}

// Charts -----------------------------------------------------------------------------------------

function utilizationSection() {
  legend(byId("utilization-legend"), [
    ...threadEntries, ["bound", "", "tick"],
    ...report.peers.slice(0, 1).map((paper) => [paper.name, "var(--soft)", "dash"]),
    ...(report.vta ? [["open VTA, tuned, on a PYNQ board", "", "diamond"]] : []),
  ]);
  chart(() => drawUtilization(byId("utilization-chart"), report));
  const sources = report.peers.map((peer) =>
    [`${peer.name}, ${percent(peer.without, 0)} without and ${percent(peer.hidden, 0)} with hiding: `, peer.source]);
  if (report.vta) sources.push(["Open VTA: ", report.vta.source]);
  byId("peers").replaceChildren(...sources.map(([name, source]) => element("li", {}, element("b", {}, name), source)));
  const columns = ["layer", "MMAC", "bound", ...report.threads.map((v) => `cycles, ${v}`),
    ...report.threads.map((v) => `utilization, ${v}`), ...report.threads.map((v) => `schedule, ${v}`)];
  const cells = (name, own, schedules) => [name, (own.macs / 1e6).toFixed(1), count(own.bound_cycles),
    ...report.threads.map((v) => count(own.cycles[v])), ...report.threads.map((v) => percent(own.utilization[v])), ...schedules];
  const rows = layers.map((layer) =>
    cells(layer.name, layer, report.threads.map((v) => report.layers[layer.name][v].schedule)));
  table(byId("utilization-table"), columns, [...rows, cells("total", total, report.threads.map(() => ""))], true);
}

function sameSection() {
  if (!report.same) return;
  byId("same").hidden = false;
  const variants = Object.keys(report.same.total.cycles);
  legend(byId("same-legend"), variants.map((v, rank) => [v, threadColour(rank)]));
  chart(() => drawSame(byId("same-chart"), report.same, variants));
  const cells = (name, own) => [name, ...variants.map((v) => percent(own.utilization[v])), ...variants.map((v) => count(own.cycles[v]))];
  table(byId("same-table"), ["layer", ...variants, ...variants.map((v) => `cycles, ${v}`)],
    [...report.same.layers.map((layer) => cells(layer.name, layer)), cells("total", report.same.total)], true);
}

function hidingSection() {
  legend(byId("hiding-legend"), threadEntries);
  chart(() => drawHiding(byId("hiding-chart"), report));
  const engines = Object.keys(total.work[plain]);
  const cells = (name, own) => [name, ...engines.flatMap((engine) => report.threads.map((v) => hiddenText(own.work[v][engine])))];
  table(byId("hiding-table"), ["layer", ...engines.flatMap((engine) => report.threads.map((v) => `${engine}, ${v}`))],
    [...layers.map((layer) => cells(layer.name, layer)), cells("total", total)], true);
}

function causesSection() {
  const chosen = { v: plain, scale: "share" };
  legend(byId("causes-legend"), Object.entries(CAUSES).map(([cause, text]) => [text, `var(--${cause})`]));
  const draw = () => drawCauses(byId("causes-chart"), report, chosen.v, chosen.scale);
  const fillTable = () => {
    const rows = layers.flatMap((layer) => Object.entries(report.layers[layer.name][chosen.v].causes).map(([engine, causes]) =>
      [layer.name, engine, ...Object.values(causes).map(count)]));
    table(byId("causes-table"), ["layer", "engine", ...Object.keys(CAUSES)], rows);
  };
  choices(byId("causes-scale"), [["share", "share"], ["cycles", "cycles"]], "share", (scale) => { chosen.scale = scale; draw(); });
  choices(byId("causes-threads"), threadOptions, plain, (v) => { chosen.v = v; draw(); fillTable(); });
  redraws.push(draw);
}

function rooflineSection() {
  legend(byId("roofline-legend"), threadEntries);
  chart(() => drawRoofline(byId("roofline-chart"), report));
}

function sweepSection() {
  if (!report.sweep) return;
  byId("sweep").hidden = false;
  const points = [...report.sweep.sweep].sort((a, b) => a.latency - b.latency);
  const [first, last] = [points[0], points.at(-1)];
  const losses = report.threads.map((v) =>
    `${percent(last.total.cycles[v] / first.total.cycles[v] - 1)} with ${threadsText(v)}`);
  byId("sweep-lead").textContent = `From ${count(first.latency)} to ${plural(last.latency, "cycle")} of latency, cycles ` +
    `grow by ${losses.join(", ")}. The schedule is chosen anew at every latency, for every number of threads.`;
  legend(byId("sweep-legend"), threadEntries);
  const chosen = { layer: "", scale: "utilization" };
  const select = byId("sweep-layer");
  select.append(element("option", { value: "" }, "all layers"),
    ...layers.map((layer) => element("option", { value: layer.name }, layer.name)));
  const draw = () => drawSweep(byId("sweep-chart"), report, chosen.layer, chosen.scale);
  const fillTable = () => table(byId("sweep-table"),
    ["latency", ...report.threads.map((v) => `cycles, ${v}`), ...report.threads.map((v) => `utilization, ${v}`)],
    points.map((point) => {
      const own = pointOf(point, chosen.layer);
      return [count(point.latency), ...report.threads.map((v) => count(own.cycles[v])), ...report.threads.map((v) => percent(own.utilization[v]))];
    }));
  select.addEventListener("change", () => { chosen.layer = select.value; draw(); fillTable(); });
  choices(byId("sweep-scale"), Object.keys(SWEEPS).map((scale) => [scale, scale]), "utilization", (scale) => { chosen.scale = scale; draw(); });
  fillTable();
  redraws.push(draw);
}

// Timeline ---------------------------------------------------------------------------------------

function timelineSection() {
  const shown = { layer: layers.findIndex((layer) => layer.name === report.traced), v: best };
  const known = {}, timeline = timelineControls("layer", () => `, ${threadsText(shown.v)}`);
  const id = () => `trace-${shown.layer}-${shown.v}`;
  const draw = async (anew) => {
    const wanted = id();
    known[wanted] ??= new Tracks(await unpacked(wanted));
    if (wanted !== id()) return; // another one was chosen meanwhile
    byId("timeline-name").textContent = layers[shown.layer].name;
    timeline(known[wanted], anew);
    byId("timeline-canvas").dataset.shown = wanted;
  };
  const select = byId("timeline-layer");
  select.append(...report.traces.map((place) => element("option", { value: place }, layers[place].name)));
  select.value = shown.layer;
  select.parentElement.hidden = report.traces.length < 2;
  select.addEventListener("change", () => { shown.layer = Number(select.value); draw(true); });
  byId("timeline-name").textContent = report.traced;
  const left = layers.length - report.traces.length;
  byId("timeline-left").textContent = left ? `${plural(left, "layer")} more didn’t fit into this file: vdla compare --trace-layer chooses one.` : "";
  choices(byId("timeline-threads"), threadOptions, best, (v) => { shown.v = v; draw(false); });
  byId("timeline-save").addEventListener("click", async () => {
    const file = layers[shown.layer].name.replaceAll("/", "_");
    save(`${report.model}-${report.machine.name}-${file}-${shown.v}.trace.json`, JSON.stringify(await unpacked(id())));
  });
}

// Placement --------------------------------------------------------------------------------------

function placementSection() {
  const ours = report.placement.filter((row) => row.device === "vdla").length;
  const rest = report.placement.length - ours;
  byId("placement-lead").textContent =
    `${plural(ours, "operator")} on the accelerator, ${count(rest)} on the host. ` +
    (report.remark && `${report.remark}.`);
  choices(byId("placement-filter"), [["all", "all"], ["vdla", "accelerator"], ["cpu", "host"]], "all", (device) => {
    // whatever isn't the accelerator is the host: compiled code, or onnxruntime
    const wanted = (row) => device === "all" || (row.device === "vdla") === (device === "vdla");
    const rows = report.placement.filter(wanted);
    table(byId("placement-table"), ["operator", "kind", "runs on", "why", `schedule, ${threadsText(best)}`], rows.map((row) => [
      row.name, row.op, element("span", { class: `where ${row.device}` }, row.device), row.reason,
      report.layers[row.name]?.[best]?.schedule ?? ""]));
  });
}

drawHeader();
utilizationSection();
sameSection();
hidingSection();
causesSection();
rooflineSection();
sweepSection();
timelineSection();
placementSection();
drawContents();
byId("data-save").addEventListener("click", () =>
  save(`${report.model}-${report.machine.name}.json`, JSON.stringify(report.sweep ?? report.comparison)));

let wide = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === wide) return; // a phone's address bar comes and goes
  wide = innerWidth;
  hideTip();
  redraws.forEach((draw) => draw());
});
