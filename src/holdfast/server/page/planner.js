// The planner: rows, questions, tail and confidence in; errors by method out.

import { Newest, isAbort, send } from "./api.js";
import { curvePlot, legend, methodPlot } from "./comparison.js";
import { byId, debounced, el, empty, fill, onWidth } from "./elements.js";
import { count, counted, number, plusMinus } from "./format.js";
import { expectedBars } from "./gauge.js";
import { Slider, roundSteps } from "./sliders.js";
import { table } from "./table.js";
import { trouble } from "./trouble.js";
import { currentView, whenShown } from "./views.js";

const newest = new Newest();
const GIVEN = [
  {
    id: "rows", label: "Rows", help: "Units of the table that is to be sealed.",
    values: roundSteps(1000, 10_000_000), allowed: [100, 1e9], value: 100_000, whole: true,
  },
  {
    id: "queries", label: "Questions", help: "How many may be asked, each after all the answers before.",
    values: roundSteps(1, 100_000), allowed: [1, 1e6], value: 500, whole: true,
  },
  {
    id: "tail", label: "Tail", help: "ρ: answers lie in the middle 1 − 2ρ of what fresh blocks say.",
    values: [0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45],
    allowed: [0.000001, 0.49], value: 0.25, whole: false,
  },
  {
    id: "confidence", label: "Confidence", help: "That all answers hold at once.",
    values: [0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 0.9999], allowed: [0.5, 0.9999], value: 0.95, whole: false,
  },
];
const COLOURS = ["c0", "c1", "c2", "c3", "c4", "c6"];
let sliders = [];
let found = null;

/** Make the sliders. */
export function startPlanner() {
  const later = debounced(200, load);
  sliders = GIVEN.map((given) => new Slider(given, later));
  const form = byId("planner");
  form.append(...sliders.map((each) => each.element));
  form.addEventListener("submit", (event) => event.preventDefault());
  onWidth(byId("planned"), () => { if (found) show(found); });
  whenShown("planner", load);
}

async function load() {
  if (currentView() !== "planner" || sliders.some((each) => each.value === null)) return newest.cancel();
  const box = byId("planned");
  const signal = newest.next();
  box.classList.add("loading");
  box.setAttribute("aria-busy", "true");
  const query = new URLSearchParams(sliders.map((each) => [each.id, String(each.value)]));
  try {
    for (const curve of [false, true]) { // the curve takes a few times as long
      found = await send("GET", `api/plan?${query}&curve=${curve}`, { signal, retries: 4 });
      sliders.forEach((each) => each.blame(""));
      box.classList.remove("loading");
      show(found);
    }
  } catch (error) {
    if (isAbort(error)) return undefined; // a newer request is on its way
    refused(error);
  }
  box.classList.remove("loading");
  box.removeAttribute("aria-busy");
  return undefined;
}

function refused(error) {
  found = null;
  fill(byId("planned"), empty("There is no plan for this.", error.message));
  const slider = sliders.find((each) => each.id === error.parameter);
  if (slider) slider.blame(error.message);
  else if (error.status === 401 || error.status === 0) trouble(error);
}

function show(plan) {
  const methods = coloured(plan.methods);
  const width = byId("planned").clientWidth;
  const inner = Math.max(240, width - (width > 620 ? 46 : 34));
  fill(byId("planned"),
    ...withoutPlan(plan),
    el("h2", {}, "With a plan, for any mean between 0 and 1"),
    el("p", { class: "headline", role: "status" }, ...headline(plan, methods)),
    figure("Error by method, for these questions", methodPlot(methods, inner)),
    figure("Error by the number of questions", ...curve(plan, methods, inner)),
    methodTable(plan, methods));
}

/** What scores, comparisons, shares and means get, for which nothing has to be planned. */
function withoutPlan({ rows, told }) {
  if (!told) return [];
  const [{ bars }] = told.parts;
  const [first, last] = [bars[0], bars.at(-1)];
  return [
    el("h2", {}, "Without a plan: scores, comparisons, shares and means"),
    el("p", { class: "headline", role: "status" }, `${counted(rows, "row")}, of which `,
      `${count(told.blocks * told.block_units)} are sealed: a share near 0.9, such as an accuracy, that you guess `,
      "about right, within ", el("b", {}, plusMinus(first.half_widths[0])), " of the truth at first, and ",
      el("b", {}, plusMinus(last.half_widths[0])), ` after ${counted(last.questions, "question")} without a surprise `,
      "(a guess that was off)."),
    el("div", { class: "card" }, ...expectedBars({ told: { bars } })),
  ];
}

/** Certified methods in colours, the others in grey. */
function coloured(methods) {
  let next = 0;
  return methods.map((method) => ({ ...method, colour: method.certified ? COLOURS[next++ % COLOURS.length] : "c5" }));
}

function curve(plan, methods, width) {
  return plan.curve.length > 1 ? [curvePlot(plan, methods, width), legend(methods)] : [waiting()];
}

const waiting = () => el("p", { class: "soft waiting" }, "Finding the errors for other numbers of questions…");

function headline(plan, methods) {
  const able = methods.filter((each) => each.certified && each.half_width !== null);
  const study = `${counted(plan.queries, "question")} to ${counted(plan.rows, "row")}`;
  if (able.length === 0) return [`No method certifies an error for ${study}. Fewer questions or more rows would do.`];
  const best = able.reduce((a, b) => (b.half_width < a.half_width ? b : a));
  const error = el("b", {}, `± ${number(best.half_width, 3)}`);
  return [`${study}: every mean within `, error, ` of the truth, by ${best.label}.`];
}

function figure(caption, ...drawn) {
  return el("figure", { class: "card" }, el("figcaption", { class: "plot-head" }, caption), ...drawn);
}

function methodTable(plan, methods) {
  const columns = [
    { label: "Method" }, { label: "Error ±", class: "num" }, { label: "Blocks", class: "num" }, { label: "Certified" },
    { label: "About" },
  ];
  const rows = methods.map((each) => ({ cells: [
    each.label, each.half_width === null ? "none" : number(each.half_width, 3),
    each.blocks === null || each.blocks === undefined ? "–" : count(each.blocks),
    el("span", { class: `pill ${each.certified ? "good" : "warn"}` }, each.certified ? "yes" : "no"),
    [each.about, each.reason].filter(Boolean).join(" "),
  ] }));
  const study = [counted(plan.queries, "question"), counted(plan.rows, "row"), `tail ${number(plan.tail)}`,
    `confidence ${number(plan.confidence)}`];
  return el("div", { class: "card" }, table({ caption: study.join(", "), columns, rows, lead: true, stacks: true }));
}
