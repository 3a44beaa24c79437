// Elements, numbers, tooltips: what every part of the page uses. Text is set, never markup.

const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);
const readJson = (id) => JSON.parse(byId(id).textContent);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const element = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);
const shape = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

const count = (n) => Math.round(n).toLocaleString("en-US");
const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;
const plural = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;
const threadsText = (v) => plural(Number(v), "virtual thread");
const short = (n) =>
  n >= 1e6 ? `${+(n / 1e6).toPrecision(3)} M` : n >= 1e4 ? `${+(n / 1e3).toPrecision(3)} k` : count(n);
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

// Round steps of 1, 2 or 5 times a power of ten: at most `most` of them up to `end`.
function step(end, most) {
  const raw = end / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  return power * [1, 2, 5, 10].find((each) => each * power >= raw);
}

// Tooltips ---------------------------------------------------------------------------------------

function showTip(lines, x, y) {
  const tip = byId("tip");
  const [title, ...rest] = lines;
  tip.replaceChildren(element("b", {}, title), ...rest.map((line) => element("div", {}, line)));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = x + 14 + width > innerWidth ? x - 14 - width : x + 14;
  const top = y + 16 + height > innerHeight ? y - 10 - height : y + 16;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}

const hideTip = () => { byId("tip").hidden = true; };

// Marks of a chart, one tab stop for all: arrow keys go from one to the next.
function explain(svg, marks) {
  let at = -1;
  const light = (index, x, y) => {
    marks.forEach((mark, i) => mark.node.classList.toggle("on", i === index));
    at = index;
    const box = marks[index].node.getBoundingClientRect();
    showTip(marks[index].lines, x ?? box.right, y ?? box.top);
  };
  const leave = () => {
    marks.forEach((mark) => mark.node.classList.remove("on"));
    hideTip();
  };
  marks.forEach((mark, i) => {
    mark.node.classList.add("mark");
    mark.node.addEventListener("pointermove", (event) => light(i, event.clientX, event.clientY));
    mark.node.addEventListener("pointerleave", leave);
  });
  svg.setAttribute("tabindex", "0");
  svg.addEventListener("blur", leave);
  svg.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") leave();
    if (!by || !marks.length) return;
    event.preventDefault();
    light((at + by + marks.length) % marks.length);
  });
}

// Controls, tables, files ------------------------------------------------------------------------

// Radio buttons in a fieldset; `chosen` is called with the value now and at every change.
function choices(fieldset, options, start, chosen) {
  for (const [value, label] of options) {
    const input = element("input", { type: "radio", name: fieldset.id, value });
    input.checked = value === start;
    input.addEventListener("change", () => chosen(value));
    fieldset.append(element("label", {}, input, label));
  }
  fieldset.hidden = options.length < 2;
  chosen(start);
}

function legend(node, entries) {
  node.replaceChildren(...entries.map(([label, colour, kind = ""]) => {
    const key = element("i", { class: kind });
    if (kind === "dash") key.style.borderColor = colour;
    else if (!kind) key.style.background = colour;
    return element("span", {}, key, label);
  }));
}

// A number, with its unit, or a dash where there is none.
const NUMBER = /^([-–−+≤]?\s?\d[\d,.]*(e[-+]?\d+)?\s?[^\s\d]{0,6}|–)?$/;

// Rows of text; columns whose cells are all numbers are set flush right. The last row may be a total.
function table(node, columns, rows, total = false) {
  const numeric = columns.map((_, i) => rows.every((row) => NUMBER.test(row[i])));
  const cells = (tag, row) =>
    row.map((cell, i) => element(tag, numeric[i] ? { class: "number" } : {}, cell));
  const body = rows.map((row, i) =>
    element("tr", total && i === rows.length - 1 ? { class: "total" } : {}, ...cells("td", row)));
  const head = element("thead", {}, element("tr", {}, ...cells("th", columns)));
  node.replaceChildren(element("table", {}, head, element("tbody", {}, ...body)));
}

function save(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
