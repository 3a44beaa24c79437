// Labels beside points, none over another, as analysis/labels.py places them: each at the nearest
// free place around its point, with a line to it where that is some way off. Boxes are
// [left, top, right, bottom] in pixels.

const GAP = 6, STEPS = 20; // pixels from a point to its label; distances tried, each a gap farther
const AROUND = [[0, 1], [1, 1], [-1, 1], [1, 0], [-1, 0], [0, -1], [1, -1], [-1, -1]];

const overlap = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
const within = (a, b) => a[0] >= b[0] && a[2] <= b[2] && a[1] >= b[1] && a[3] <= b[3];
const around = (x, y, half) => [x - half, y - half, x + half, y + half];
const lineEnd = ([x, y], box) => [Math.min(Math.max(x, box[0]), box[2]), Math.min(Math.max(y, box[1]), box[3])];

// Small boxes along the line from a point to its label.
function lineBoxes([x, y], box) {
  const [endX, endY] = lineEnd([x, y], box), count = Math.floor(Math.hypot(endX - x, endY - y) / 4);
  return Array.from({ length: Math.max(0, count - 1) }, (_, i) => (i + 1) / count)
    .map((share) => around(x + share * (endX - x), y + share * (endY - y), 1));
}

// The box of each label and whether it has a line, or null where no place is free.
function placedLabels(points, sizes, bounds, obstacles) {
  const taken = [...obstacles], texts = [], labels = points.map(() => null);
  const place = (i) => {
    const [[x, y], [width, height]] = [points[i], sizes[i]];
    for (let step = 0; step < STEPS; step++) {
      for (const [across, down] of AROUND) {
        const left = x - width / 2 + across * (GAP * (1 + step) + width / 2);
        const top = y - height / 2 + down * (GAP * (1 + step) + height / 2);
        const box = [left, top, left + width, top + height], line = step ? lineBoxes([x, y], box) : [];
        if (!within(box, bounds) || taken.some((other) => overlap(box, other))) continue;
        if (line.some((part) => texts.some((text) => overlap(part, text)))) continue;
        taken.push(box, ...line);
        texts.push(box);
        return { box, line: step > 0 };
      }
    }
    return null;
  };
  for (const i of points.map((_, i) => i).sort((a, b) => points[a][0] - points[b][0])) labels[i] = place(i);
  return labels;
}
