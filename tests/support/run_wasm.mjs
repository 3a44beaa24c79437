// Runs a packaged network in Node: run_wasm.mjs FOLDER NAME, inputs' bytes on stdin, outputs' on stdout.
import { readFileSync, writeSync } from "node:fs";

const [folder, name] = process.argv.slice(2);
const { Network } = await import(`${folder}/vdla.mjs`);
const net = await Network.open(readFileSync(`${folder}/${name}.wasm`));
const given = readFileSync(0);
let at = given.byteOffset;
const arrays = Object.fromEntries(net.tensors("vdla_input").map(({ name, view }) => {
  const bytes = given.buffer.slice(at, (at += view.byteLength));
  return [name, new view.constructor(bytes)];
}));
net.run(arrays);
for (const value of Object.values(net.run(arrays)).flat()) if (value) writeSync(1, new Uint8Array(value.buffer));
