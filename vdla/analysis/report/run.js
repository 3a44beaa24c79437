// The page of one run: its layers, and its timeline.

const report = readJson("data");
const trace = await unpacked("trace");
const tracks = new Tracks(trace);

function headerSection() {
  const { machine } = report;
  document.querySelector(".kicker").textContent = `Timeline · ${machine.name}`;
  byId("headline").textContent = report.title;
  byId("lead").textContent = report.lead;
  machineFacts(machine);
  byId("origin").textContent = `vdla ${report.version}. The cycles are the simulator’s, which are the RTL’s. ` +
    "This file holds all its data and asks no server for anything.";
}

function layersSection() {
  const instructions = (name) => tracks.instructions.filter((each) => each.layer === name).length;
  const rows = tracks.layers.map(({ name, start, end }) =>
    [name, count(start), count(end - 1), count(end - start), percent((end - start) / tracks.cycles), count(instructions(name))]);
  rows.push(["all", "0", count(tracks.cycles - 1), count(tracks.cycles), percent(1), count(tracks.instructions.length)]);
  table(byId("layers-table"), ["layer", "first cycle", "last cycle", "cycles", "of all", "instructions"], rows, true);
}

function timelineSection() {
  byId("timeline-name").textContent = report.title;
  byId("timeline-threads").hidden = byId("timeline-layer").parentElement.hidden = true;
  timelineControls("run", () => "")(tracks).fit();
  byId("timeline-save").addEventListener("click", () =>
    save(`${report.title.replaceAll(/\W+/g, "-")}-${report.machine.name}.trace.json`, JSON.stringify(trace)));
}

headerSection();
timelineSection();
layersSection();
