// Attained GOPS over operations per byte, both logarithmic, under the roof.

function drawRoofline(node, report) {
  const { machine, threads } = report, { layers } = report.comparison;
  const points = layers.map((layer) => ({ layer, intensity: (2 * layer.macs) / layer.dram_bytes }));
  const height = 400, bottom = height - 44;
  const { svg, width } = frame(node, "Roofline", 320, height);
  const right = width - MARGIN.right, ridge = machine.peak_gops / machine.gb_per_s;
  const least = Math.min(ridge, ...points.map((p) => p.intensity)) / 1.6;
  const most = 1.6 * Math.max(ridge, ...points.map((p) => p.intensity));
  const floor = Math.min(...points.flatMap(({ layer }) => threads.map((v) => machine.peak_gops * layer.utilization[v]))) / 1.6;
  const top = machine.peak_gops * 1.4;
  const scale = (low, high, from, to) => (value) =>
    from + (Math.log(value / low) / Math.log(high / low)) * (to - from);
  const x = scale(least, most, MARGIN.left, right), y = scale(floor, top, bottom, MARGIN.top);
  const ticks = (low, high, factors) => {
    const found = [];
    for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) {
      found.push(...factors.map((f) => f * power).filter((t) => t >= low * 0.999 && t <= high * 1.001));
    }
    return found;
  };
  grid(svg, ticks(floor, top, [1, 2, 5]), y, width, (t) => `${+t.toPrecision(2)}`);
  for (const t of ticks(least, most, [1, 2, 5])) {
    svg.append(
      shape("line", { class: "grid", x1: x(t), x2: x(t), y1: MARGIN.top, y2: bottom }),
      shape("text", { x: x(t), y: bottom + 18, "text-anchor": "middle" }, +t.toPrecision(2)));
  }
  const roof = (value) => y(Math.min(machine.peak_gops, value * machine.gb_per_s));
  const corner = Math.max(least, floor / machine.gb_per_s); // the roof enters from the left or from below
  svg.append(
    shape("path", { class: "roof", d: `M${x(corner)} ${roof(corner)}L${x(ridge)} ${roof(ridge)}L${right} ${roof(most)}` }),
    shape("text", { x: (MARGIN.left + right) / 2, y: bottom + 38, "text-anchor": "middle" }, "operations per byte of DRAM traffic"),
    shape("text", { x: 4, y: MARGIN.top }, "GOPS"));
  const peak = shape("text", { class: "strong", x: right, y: roof(most) - 8, "text-anchor": "end" },
    `${+machine.peak_gops.toPrecision(4)} GOPS, ${+machine.gb_per_s.toPrecision(3)} GB/s ${machine.clock}`);
  svg.append(peak);
  const marks = drawPoints(svg, report, points, x, y);
  const edges = Array.from({ length: Math.ceil((right - x(corner)) / 4) }, (_, i) => x(corner) + 4 * i)
    .map((at) => around(at, roof(least * (most / least) ** ((at - MARGIN.left) / (right - MARGIN.left))), 2));
  nameLayers(svg, report, points.map(({ layer, intensity }) => ({ layer,
    dots: threads.map((v) => [x(intensity), y(machine.peak_gops * layer.utilization[v])]) })),
    [MARGIN.left, MARGIN.top, right, bottom], [...edges, boxOf(peak)]);
  explain(svg, marks);
}

function drawPoints(svg, report, points, x, y) {
  const marks = [];
  const attained = (layer, v) => report.machine.peak_gops * layer.utilization[v];
  for (const { layer, intensity } of points) {
    const heights = report.threads.map((v) => y(attained(layer, v)));
    svg.append(shape("line", { x1: x(intensity), x2: x(intensity), y1: Math.max(...heights), y2: Math.min(...heights),
      stroke: "var(--soft)", "stroke-width": 1.2, opacity: 0.6 }));
  }
  for (const { layer, intensity } of points) {
    for (const [rank, v] of report.threads.entries()) {
      const dot = shape("circle", { class: "point", cx: x(intensity), cy: y(attained(layer, v)), r: 5,
        fill: threadColour(rank), stroke: "var(--card)", "stroke-width": 1 });
      const roof = Math.min(report.machine.peak_gops, intensity * report.machine.gb_per_s);
      marks.push({ node: dot, lines: [
        `${layer.name}: ${attained(layer, v).toFixed(1)} GOPS with ${threadsText(v)}`,
        `${intensity.toFixed(1)} operations per byte; the roof there is ${roof.toFixed(1)} GOPS, ` +
          `${percent(attained(layer, v) / roof)} of it attained`] });
      svg.append(dot);
    }
  }
  return marks;
}

const NEAR = 6, LONGEST = 8; // pixels between dots with one label; letters of a name that stands there

function boxOf(text) {
  const { x, y, width, height } = text.getBBox();
  return [x, y, x + width, y + height];
}

// Short names themselves stand at the lowest dot of a layer, or near it; longer ones have numbers
// there and a list below. Layers whose dots coincide share a label.
function nameLayers(svg, report, layers, bounds, obstacles) {
  const numbered = layers.some(({ layer }) => layer.name.length > LONGEST);
  const groups = [];
  for (const [i, { layer, dots }] of layers.entries()) {
    const dot = dots.reduce((a, b) => (b[1] > a[1] ? b : a)), name = numbered ? `${i + 1}` : layer.name;
    const group = groups.find(({ at }) => Math.abs(at[0] - dot[0]) < NEAR && Math.abs(at[1] - dot[1]) < NEAR);
    if (group) group.names.push(name);
    else groups.push({ at: dot, names: [name] });
  }
  const texts = groups.map(({ names }) => {
    const text = shape("text", { class: "layer-name halo", "pointer-events": "none" }, names.join(", "));
    svg.append(text);
    return text;
  });
  const boxes = texts.map(boxOf), sizes = boxes.map((box) => [box[2] - box[0], box[3] - box[1]]);
  const marks = layers.flatMap(({ dots }) => dots.map((dot) => around(...dot, 5)));
  placedLabels(groups.map(({ at }) => at), sizes, bounds, [...obstacles, ...marks]).forEach((label, i) => {
    if (!label) return texts[i].remove();
    const [text, own] = [texts[i], boxes[i]], { at } = groups[i];
    text.setAttribute("x", label.box[0] - own[0]);
    text.setAttribute("y", label.box[1] - own[1]);
    if (!label.line) return;
    const [endX, endY] = lineEnd(at, label.box);
    text.before(shape("line", { x1: at[0], y1: at[1], x2: endX, y2: endY, stroke: "var(--soft)", "stroke-width": 0.8, "pointer-events": "none" }));
  });
  const list = byId("roofline-names");
  list.hidden = !numbered;
  list.replaceChildren(...layers.map(({ layer }) => element("li", {}, layer.name)));
}
