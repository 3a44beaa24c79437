// A trace as the timeline needs it: instructions in rows, tokens between instructions.

const KINDS = {
  "LOAD INP": "inp", "LOAD WGT": "wgt", "LOAD ACC": "acc", "LOAD UOP": "uop",
  GEMM: "gemm", ALU: "alu", STORE: "store", "STORE INP": "forward",
};
const kindOf = (name) => KINDS[name] ?? KINDS[name.split(" ")[0]] ?? "other";

// What ended an engine's idle time before an instruction.
const STALLS = {
  token: "last came a token", fetch: "last came the instruction itself",
  drain: "FINISH waits until all engines are done",
};

class Tracks {
  // `trace` is what write_trace writes: processes are engines, threads their rows, flows tokens; a
  // process more has the layers, which take no rows here where there is only one.
  constructor(trace) {
    this.cycles = trace.otherData.cycles;
    this.names = trace.otherData.engines; // in the order of their processes
    this.instructions = [];
    this.tokens = [];
    const starts = new Map(), ends = new Map(), open = new Map(), rows = new Map();
    const key = (event, cycle) => `${event.pid}/${event.tid}/${cycle}`;
    this.layers = trace.traceEvents.filter((event) => event.cat === "layers").map((event) =>
      ({ name: event.name, start: event.ts, end: event.ts + event.dur, row: event.tid - 1 }));
    this.layerRows = this.layers.length > 1 ? Math.max(...this.layers.map((each) => each.row)) + 1 : 0;
    for (const event of trace.traceEvents) {
      if (event.ph !== "X" || event.args?.index === undefined) continue;
      const each = {
        ...event.args, name: event.name, kind: kindOf(event.name), engine: event.pid - 1,
        start: event.ts, end: event.ts + event.dur, pops: [], pushes: [],
      };
      this.instructions[each.index] = each;
      starts.set(key(event, each.start), each);
      ends.set(key(event, each.end - 1), each);
      const row = `${event.pid}/${event.tid}`;
      if (!rows.has(row)) rows.set(row, { engine: event.pid - 1, lane: event.tid - 1, items: [] });
      rows.get(row).items.push(each);
    }
    for (const engine of this.names.keys()) { // one that does nothing has a row, too
      const row = `${engine + 1}/1`;
      if (!rows.has(row)) rows.set(row, { engine, lane: 0, items: [] });
    }
    this.rows = [...rows.values()].sort((a, b) => a.engine - b.engine || a.lane - b.lane);
    for (const row of this.rows) {
      row.items.sort((a, b) => a.start - b.start);
      for (const each of row.items) each.row = row;
    }
    this.engines = this.names.map((_, engine) => this.instructions.filter((each) => each.engine === engine));
    for (const event of trace.traceEvents) {
      if (event.ph === "s") open.set(event.id, ends.get(key(event, event.ts)));
      if (event.ph !== "f") continue;
      const from = open.get(event.id), to = starts.get(key(event, event.ts));
      from.pushes.push(to);
      to.pops.push(from);
      this.tokens.push({ from, to });
    }
  }

  // The first item of a row or engine that ends after a cycle: both are in order of their starts.
  static after(items, cycle) {
    let low = 0, high = items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (items[middle].end > cycle) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  // Of each of `bins` equal spans, the share in which COMPUTE has something in flight.
  occupancy(bins) {
    const share = new Float64Array(bins), width = this.cycles / bins;
    let covered = 0;
    for (const each of this.engines[this.names.indexOf("COMPUTE")]) {
      const from = Math.max(each.start, covered);
      for (let bin = Math.floor(from / width); bin < bins && bin * width < each.end; bin++) {
        const overlap = Math.min(each.end, (bin + 1) * width) - Math.max(from, bin * width);
        share[bin] += Math.max(0, overlap) / width;
      }
      covered = Math.max(covered, each.end);
    }
    return share;
  }

  // What is told of an instruction: title first.
  lines(each) {
    const name = (other) => `#${other.index} ${other.name}`;
    const lines = [
      `${name(each)}`,
      each.assembly,
      `cycles ${count(each.start)} to ${count(each.end - 1)}: ${count(each.end - each.start)}`,
    ];
    if (each.stage) lines.push(`stage ${each.stage}${this.layerRows && each.layer ? ` of ${each.layer}` : ""}`);
    if (each.stall) {
      const giver = each.waited_for === undefined ? "" : ` from ${name(this.instructions[each.waited_for])}`;
      lines.push(`before it ${this.names[each.engine]} was idle for ${plural(each.stalled, "cycle")}: ${STALLS[each.stall]}${giver}`);
    }
    if (each.pops.length) lines.push(`pops ← ${each.pops.map(name).join(", ")}`);
    if (each.pushes.length) lines.push(`pushes → ${each.pushes.map(name).join(", ")}`);
    return lines;
  }
}
