// Attained GOPS over operations per byte, both logarithmic, under the roof.

function drawRoofline(node, report) {
  const { machine, threads } = report, { layers } = report.comparison;
  const points = layers.map((layer) => ({ layer, intensity: (2 * layer.macs) / layer.dram_bytes }));
  const height = 400, bottom = height - 44;
  const { svg, width } = frame(node, "Roofline", 320, height);
  const right = width - MARGIN.right, ridge = machine.peak_gops / machine.gb_per_s;
  const least = 0.5 * Math.min(ridge / 3, ...points.map((p) => p.intensity));
  const most = 1.6 * Math.max(ridge, ...points.map((p) => p.intensity));
  const floor = 0.7 * Math.min(least * machine.gb_per_s, ...points.flatMap(({ layer }) =>
    threads.map((v) => machine.peak_gops * layer.utilization[v])));
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
  svg.append(
    shape("path", { class: "roof", d: `M${x(least)} ${y(least * machine.gb_per_s)}L${x(ridge)} ${y(machine.peak_gops)}L${right} ${y(machine.peak_gops)}` }),
    shape("text", { class: "strong", x: right, y: y(machine.peak_gops) - 8, "text-anchor": "end" }, `${+machine.peak_gops.toPrecision(4)} GOPS`),
    shape("text", { class: "strong halo", x: x(ridge / 2) - 6, y: y(machine.peak_gops / 2) - 8, "text-anchor": "end" }, `${+machine.gb_per_s.toPrecision(3)} GB/s`),
    shape("text", { x: (MARGIN.left + right) / 2, y: bottom + 38, "text-anchor": "middle" }, "operations per byte of DRAM traffic"),
    shape("text", { x: 4, y: MARGIN.top }, "GOPS"));
  const marks = drawPoints(svg, report, points, x, y);
  nameLayers(svg, report, points, x, y);
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

// A name below a layer's lowest point, where no other name stands yet.
function nameLayers(svg, report, points, x, y) {
  const taken = [];
  for (const { layer, intensity } of points) {
    const low = Math.min(...report.threads.map((v) => layer.utilization[v]));
    const at = { x: x(intensity), y: y(report.machine.peak_gops * low) + 18, half: layer.name.length * 3.3 };
    if (layer.name.length > 24 || taken.some((t) => Math.abs(t.x - at.x) < t.half + at.half && Math.abs(t.y - at.y) < 13)) continue;
    taken.push(at);
    svg.append(shape("text", { class: "halo", x: at.x, y: at.y, "text-anchor": "middle", "pointer-events": "none" }, layer.name));
  }
}
