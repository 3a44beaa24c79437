// The page around a network: a canvas for each image of one or three channels, a text for any other
// input; a table for each output, the largest element first in a vector of scores.

const MOST_SHOWN = 24;  // elements of an output
const PEN = 1.4;        // pixels of the network's image
const net = await Network.open(Uint8Array.from(atob(MODULE), (c) => c.charCodeAt(0)));
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

// Rows of a table: where there are ten or so scores, each with its share, else the first elements.
function addOutput(parent, name, value) {
  add(parent, "h2", { textContent: name });
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
    for (const [name, value] of Object.entries(outputs)) addOutput(element("outputs"), name, value);
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
