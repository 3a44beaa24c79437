// Calls host functions in WebAssembly, as bare_programs.py says: node bare_wasm.cjs PROGRAM

const fs = require("fs");

const [size, ...lines] = fs.readFileSync(process.argv[2], "utf8").split("\n");
const bytes = Number(size), ALIGNMENT = 64, PAGE = 65536, ARENA = 8 << 20;
const code = new WebAssembly.Module(fs.readFileSync(process.argv[2] + ".wasm"));
let arena = 0, used = 0, peak = 0;

function taken(count) {
  const result = arena + used;
  used += Math.ceil(count / 16) * 16;
  if (used > ARENA) throw new Error("the arena is full");
  peak = Math.max(peak, used);
  return result;
}

// Functions of libm by those of Math: a name that ends with f rounds to float32.
function given(name) {
  if (name === "malloc") return taken;
  if (name === "free") return (memory) => { used = memory - arena; };
  if (name in Math) return Math[name];
  const wide = name.slice(0, -1);
  if (name.endsWith("f") && wide in Math) return (...x) => Math.fround(Math[wide](...x));
  return () => { throw new Error(`no ${name}`); };
}

const env = {};
for (const { module, name } of WebAssembly.Module.imports(code)) {
  if (module !== "env") throw new Error(`an import of ${module}`);
  env[name] = given(name);
}
const program = new WebAssembly.Instance(code, { env }).exports;
const aligned = (n) => Math.ceil(n / ALIGNMENT) * ALIGNMENT;
const image = aligned(program.__heap_base.value);
const table = aligned(image + bytes);
arena = aligned(table + 4096);
const missing = arena + ARENA - program.memory.buffer.byteLength;
if (missing > 0) program.memory.grow(Math.ceil(missing / PAGE));
const memory = new Uint8Array(program.memory.buffer);
memory.set(fs.readFileSync("before"), image);
for (const line of lines) {
  const [name, ...offsets] = line.split(" ");
  const pointers = [...offsets.map((at) => image + Number(at)), 0];
  new Uint32Array(program.memory.buffer, table, pointers.length).set(pointers);
  program[name](table);
}
fs.writeFileSync("after", memory.slice(image, image + bytes));
fs.appendFileSync("after", new Uint8Array(new Uint32Array([peak]).buffer));
