// What stands around a timeline: the machine, what is told of an instruction, colours, buttons.

function machineFacts(machine) {
  const facts = [
    ["config", `${machine.name} (${machine.hash})`], ["multipliers", `${machine.block} int8`],
    ["peak", `${machine.peak_gops} GOPS ${machine.clock}`], ["memory", machine.memory],
    ["buffers", Object.entries(machine.buffers).map(([name, bytes]) => `${name} ${bytes / 1024} KiB`).join(", ")],
  ];
  byId("machine").replaceChildren(...facts.map(([name, value]) =>
    element("li", {}, `${name} `, element("b", {}, value))));
}

const COLOURED = [["LOAD INP", "inp"], ["LOAD WGT", "wgt"], ["LOAD ACC", "acc"], ["LOAD UOP", "uop"],
  ["GEMM", "gemm"], ["ALU", "alu"], ["STORE", "store"], ["STORE INP", "forward"]];

function describe(timeline, each) {
  const place = byId("timeline-detail");
  if (!each) {
    place.replaceChildren(element("p", { class: "note" }, "Choose an instruction to see where its tokens come from and go to."));
    return;
  }
  const [title, assembly, ...rest] = timeline.tracks.lines(each).filter((line) => !/^(pops|pushes)/.test(line));
  const jump = (other) => {
    const button = element("button", { type: "button" }, `#${other.index} ${other.name}`);
    button.addEventListener("click", () => timeline.choose(other));
    return button;
  };
  const links = [["pops a token of ", each.pops], ["pushes a token to ", each.pushes]]
    .filter(([, list]) => list.length).map(([text, list]) => element("p", {}, text, ...list.map(jump)));
  place.replaceChildren(element("p", {}, element("b", {}, title), " ", element("span", { class: "mono" }, assembly)),
    element("p", {}, rest.join("; ")), ...links);
}

// The timeline of the page's canvas; gives the function that shows other tracks. `whole` is what all
// of its cycles are, `remark` what is said of them behind the cycles in view.
function timelineControls(whole, remark) {
  const timeline = new Timeline(byId("timeline-canvas"), whole, (each) => describe(timeline, each), (crowded) => {
    byId("timeline-range").textContent = `Cycles ${count(timeline.from)} to ${count(timeline.to)} of ` +
      `${count(timeline.tracks.cycles)}${remark()}${crowded ? "; zoom in to see token arrows" : ""}`;
  });
  byId("timeline-arrows").addEventListener("change", (event) => { timeline.arrows = event.target.checked; timeline.redraw(); });
  byId("timeline-in").addEventListener("click", () => timeline.zoom(0.6));
  byId("timeline-out").addEventListener("click", () => timeline.zoom(1 / 0.6));
  byId("timeline-fit").addEventListener("click", () => timeline.fit());
  return (tracks, anew = false) => {
    timeline.show(tracks, anew);
    const used = new Set(tracks.instructions.map((each) => each.kind));
    const idle = new Set(tracks.instructions.map((each) => each.stall));
    legend(byId("timeline-legend"), [
      ...COLOURED.filter(([, kind]) => used.has(kind)).map(([text, kind]) => [text, `var(--${kind})`]),
      ...["token", "fetch", "drain"].filter((cause) => idle.has(cause)).map((cause) =>
        [`idle, ${CAUSES[cause]}`, `color-mix(in srgb, var(--${cause}) 28%, var(--card))`]),
    ]);
    return timeline;
  };
}
