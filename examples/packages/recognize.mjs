// Recognizes a digit by the bundled network, in Node: see docs/packages.md, "In other languages".

import { readFileSync } from "node:fs";
import { Network } from "./vdla.mjs";

const IMAGE =
  "..####.." +
  ".++++##." +
  ".....##." +
  "..++##+." +
  ".######." +
  "...##..." +
  "..##...." +
  "..##....";

const net = await Network.open(readFileSync(process.argv[2]));
const image = Float32Array.from(IMAGE, (c) => ".+#".indexOf(c) / 2);
const { logits } = net.run({ image });
console.log("digit", logits.indexOf(Math.max(...logits)));
console.log([...logits].join("\n"));
