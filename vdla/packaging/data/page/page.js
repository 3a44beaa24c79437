// The page around a network: a canvas for each image of one or three channels, a text for any other
// input; a table for each output, the largest element first in a vector of scores.

const MOST_SHOWN = 24;  // elements of an output
const PEN = 1.4;        // pixels of the network's image
const net = await Network.open(Uint8Array.from(atob(MODULE), (c) => c.charCodeAt(0)));
window.net = net;       // for the browser's console: net.run({ image: new Float32Array(64) })
const element = (id) => document.getElementById(id);
const readers = {};     // of each input, what gives its elements

function add(parent, kind, properties = {}) {
  return parent.appendChild(Object.assign(document.createElement(kind), properties));
}

// [channels, height, width] of an input that is an image; null of another.
function imageOf({ shape, type }) {
  const [count, channels, height, width] = shape;
  const isImage = shape.length === 4 && count === 1 && height > 3 && width > 3;
  return isImage && [1, 3].includes(channels) && !type.endsWith("64") ? { channels, height, width } : null;
}

// Elements of a type, of brightnesses from 0 to 1: floats as they are, integers of their range.
function scaled(type, brightnesses) {
  if (type.startsWith("float")) return brightnesses;
  const [least, most] = type === "int8" ? [-128, 127] : [0, 255];
  return brightnesses.map((x) => Math.round(least + x * (most - least)));
}

function addCanvas(parent, input, { channels, height, width }) {
  const canvas = add(parent, "canvas", { width: 8 * width, height: 8 * height });
  canvas.setAttribute("aria-label", `draw ${input.name}`);
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const clear = () => pen.fillRect(0, 0, canvas.width, canvas.height);
  Object.assign(pen, { lineWidth: 8 * PEN, lineCap: "round", strokeStyle: "white", fillStyle: "black" });
  clear();
  const at = (event) => [(event.offsetX / canvas.clientWidth) * canvas.width,
                         (event.offsetY / canvas.clientHeight) * canvas.height];
  canvas.onpointerdown = (event) => { pen.beginPath(); pen.moveTo(...at(event)); };
  canvas.onpointermove = (event) => {
    if (!event.buttons) return;
    pen.lineTo(...at(event));
    pen.stroke();
    run();
  };
  const row = add(parent, "p");
  add(row, "button", { textContent: "Clear", onclick: () => { clear(); run(); } });
  add(row, "input", { type: "file", accept: "image/*", onchange: async (event) => {
    pen.drawImage(await createImageBitmap(event.target.files[0]), 0, 0, canvas.width, canvas.height);
    run();
  } });
  readers[input.name] = () => {
    const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);
    const sums = new Float32Array(channels * height * width);
    for (let n = 0; n < canvas.width * canvas.height; n++) {
      const pixel = Math.floor(n / canvas.width / 8) * width + Math.floor((n % canvas.width) / 8);
      for (let channel = 0; channel < channels; channel++)
        sums[channel * height * width + pixel] += data[4 * n + channel] / 255 / 64;
    }
    return scaled(input.type, sums);
  };
}

function addText(parent, input) {
  const count = input.shape.reduce((a, b) => a * b, 1);
  const zeros = Array(count).fill(0).join(" ");
  const text = add(parent, "textarea", { value: zeros, oninput: () => run() });
  text.setAttribute("aria-label", input.name);
  const number = input.type.endsWith("64") && input.type !== "float64" ? BigInt : Number;
  readers[input.name] = () => text.value.trim().split(/[\s,]+/).map((each) => number(each));
}

// Red, green and blue of a pixel: of one or three channels their brightness between the least and
// the most of all, of more channels the largest one's colour.
function colorOf(values, shape, pixel, [least, most]) {
  const size = shape[2] * shape[3];
  const channels = Array.from({ length: shape[1] }, (_, c) => values[c * size + pixel]);
  const shades = channels.map((x) => (255 * (x - least)) / (most - least || 1));
  if (shades.length === 3) return shades;
  if (shades.length === 1) return [shades[0], shades[0], shades[0]];
  const best = channels.indexOf(Math.max(...channels)) / shades.length;
  return [0, 1 / 3, 2 / 3].map((shift) => 127 + 127 * Math.cos(2 * Math.PI * (best + shift)));
}

function addPicture(parent, values, shape) {
  const [height, width] = shape.slice(2), canvas = add(parent, "canvas", { width, height });
  const pen = canvas.getContext("2d"), image = pen.createImageData(width, height);
  const ends = [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
  for (let pixel = 0; pixel < width * height; pixel++)
    image.data.set([...colorOf(values, shape, pixel, ends), 255], 4 * pixel);
  pen.putImageData(image, 0, 0);
}

// A picture, where an output is one; else rows of a table: each of ten or so scores with its share.
function addOutput(parent, name, value, shape = []) {
  add(parent, "h2", { textContent: name });
  if (shape.length === 4 && shape[0] === 1 && shape[2] > 3 && shape[3] > 3)
    return addPicture(parent, Array.from(value, Number), shape);
  const values = value === null ? [] : Array.from(value.flat ? value.flat() : value, Number);
  const table = add(parent, "table"), best = values.indexOf(Math.max(...values));
  const [least, most] = [Math.min(...values), Math.max(...values)];
  values.slice(0, MOST_SHOWN).forEach((each, n) => {
    const row = add(table, "tr", { className: n === best ? "best" : "" });
    add(row, "td", { textContent: n });
    add(row, "td", { textContent: each.toPrecision(4) });
    add(add(row, "td"), "meter", { min: least, max: most > least ? most : least + 1, value: each });
  });
  if (values.length > MOST_SHOWN) add(parent, "p", { textContent: `… ${values.length} elements` });
}

function run() {
  try {
    const arrays = Object.fromEntries(Object.entries(readers).map(([name, read]) => [name, read()]));
    const begun = performance.now(), outputs = net.run(arrays);
    element("status").textContent = `${(performance.now() - begun).toFixed(2)} ms`;
    element("outputs").replaceChildren();
    const shapes = Object.fromEntries(net.outputs.map(({ name, shape }) => [name, shape]));
    for (const [name, value] of Object.entries(outputs))
      addOutput(element("outputs"), name, value, shapes[name]);
  } catch (error) {
    element("status").textContent = error.message;
  }
}

element("about").textContent = net.inputs
  .map(({ name, type, shape }) => `${name}: ${type}[${shape}]`).join(", ");
for (const input of net.inputs) {
  add(element("inputs"), "h2", { textContent: input.name });
  const image = imageOf(input);
  image ? addCanvas(element("inputs"), input, image) : addText(element("inputs"), input);
}
run();
