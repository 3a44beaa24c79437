// A network that `vdla package --as wasm` made, for browsers and for Node.
//
//     import { Network } from "./vdla.mjs";
//     const net = await Network.open(fetch("digits.wasm"));    // or the file's bytes
//     net.inputs;                                              // [{name, type, shape}]
//     const { logits } = net.run({ image: new Float32Array(64) });
//
// Arrays are typed arrays, row-major; lists are arrays of them, and null is an optional output that
// isn't there.

const TYPES = [
  Uint8Array, Int8Array, Uint8Array, Int16Array, Uint16Array, Int32Array, Uint32Array,
  BigInt64Array, BigUint64Array, Uint16Array, Float32Array, Float64Array, Uint16Array,
];  // of enum vdla_type; behind them bytes
const NAMES = [
  "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
  "float32", "float64",
];
const TENSOR_BYTES = 60, BAD_MEMORY = 4;

// libm's functions, by JavaScript's: WebAssembly rounds what those of floats give.
const erf = (x) => {
  if (!(Math.abs(x) < 6)) return Math.sign(x);
  let sum = x, term = x;  // its power series, in doubles
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) {
    term *= (-x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
};
const fma = (x, y, z) => x * y + z;
const IMPORTS = { erf, erff: erf, fma, fmaf: fma };
for (const name of Object.getOwnPropertyNames(Math))
  if (typeof Math[name] === "function") IMPORTS[name] = IMPORTS[`${name}f`] = Math[name];

export class Network {
  static async open(source) {
    const given = await source;
    const bytes = given.arrayBuffer ? await given.arrayBuffer() : given;
    const { instance } = await WebAssembly.instantiate(bytes, { env: IMPORTS });
    return new Network(instance.exports);
  }

  constructor(code) {
    this.code = code;
    this.place = code.malloc(TENSOR_BYTES);
    const open = code[Object.keys(code).find((n) => n.endsWith("_open") && n !== "vdla_open")];
    let bytes = 4096, memory = code.malloc(bytes), status = open(memory, bytes, 0, this.place);
    if (status === BAD_MEMORY) {
      bytes = code.vdla_memory(this.word(0));
      code.free(memory);
      memory = code.malloc(bytes);
      status = memory ? open(memory, bytes, 0, this.place) : BAD_MEMORY;
    }
    this.net = this.word(0);
    this.check(status);
  }

  get inputs() {
    return this.tensors("vdla_input").map(({ name, type, shape }) => ({ name, type, shape }));
  }

  get outputs() {  // with the shapes of the last run; those of a list are y[0], y[1] …
    return this.tensors("vdla_output").map(({ name, type, shape }) => ({ name, type, shape }));
  }

  run(arrays) {
    for (const { name, view } of this.tensors("vdla_input")) {
      if (arrays[name]?.length !== view.length)
        throw new TypeError(`input ${name}: expected ${view.length} elements, found ${arrays[name]?.length}`);
      view.set(arrays[name]);
    }
    this.check(this.code.vdla_run(this.net));
    const outputs = {};
    for (const { name, value } of this.tensors("vdla_output")) add(outputs, name, value);
    return outputs;
  }

  check(status) {
    if (status !== 0) throw new Error(this.text(this.code.vdla_error(this.net)));
  }

  tensors(kind) {
    const made = [];
    while (this.code[kind](this.net, made.length, this.place) === 0) made.push(this.tensor());
    return made;
  }

  tensor() {
    const [name, data, bytes, type, rank] = [0, 1, 2, 3, 4].map((n) => this.word(n));
    const shape = Array.from({ length: rank }, (_, axis) => this.word(5 + axis));
    const sizes = this.word(13), isList = this.word(14);
    const Kind = TYPES[type] ?? Uint8Array;
    const view = new Kind(this.code.memory.buffer, data, bytes / Kind.BYTES_PER_ELEMENT);
    const value = data ? view.slice() : null;
    const own = { name: this.text(name), type: NAMES[type] ?? "stored", shape, view };
    return { ...own, value: isList ? this.list(value, shape, sizes) : value };
  }

  list(value, [count, ...shape], sizes) {
    const each = shape.reduce((a, b) => a * b, 1), rows = [];
    for (let row = 0; value && row < count; row++) {
      const own = value.slice(row * each, (row + 1) * each);
      const all = new BigInt64Array(this.code.memory.buffer, sizes, sizes ? count * shape.length : 0);
      const kept = shape.map((size, axis) => (sizes ? Number(all[row * shape.length + axis]) : size));
      rows.push(own.filter((_, n) => isWithin(n, shape, kept)));
    }
    return rows;
  }

  word(n) {
    return new DataView(this.code.memory.buffer).getUint32(this.place + 4 * n, true);
  }

  text(at) {
    const bytes = new Uint8Array(this.code.memory.buffer, at);
    return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
  }
}

// Whether element n of an array of some shape is among the first ``kept`` along each axis.
function isWithin(n, shape, kept) {
  for (let axis = shape.length; axis-- > 0; n = Math.floor(n / shape[axis]))
    if (n % shape[axis] >= kept[axis]) return false;
  return true;
}

// Adds an output: one called y[0] to the list y.
function add(outputs, name, value) {
  const [whole, ...places] = name.match(/^.*?(?=(?:\[\d+\])*$)|\[\d+\]/gs);
  if (places.length === 0) return void (outputs[name] = value);
  if (outputs[whole] === null) return;  // an optional list that isn't there
  let here = (outputs[whole] ??= []);
  for (const _ of places.slice(1)) here = Array.isArray(here.at(-1)) ? here.at(-1) : here[here.push([]) - 1];
  here.push(...(Array.isArray(value) ? value : [value]));
}
