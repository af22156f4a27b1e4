// The view of all answers: a plot of those on one grid, and the table of all.

import { isAbort } from "./api.js";
import { byId, debounced, el, empty, fill, onWidth, options } from "./elements.js";
import { amount, counted, gridText, number, shortened, when } from "./format.js";
import { answerPlot, fitting, heightOf } from "./plot.js";
import { bus, isCustodian, session } from "./session.js";
import { Pages, receiptButton, table } from "./table.js";
import { known, transcript } from "./transcript.js";
import { learnNames, whose } from "./tokens.js";
import { trouble } from "./trouble.js";
import { currentView, whenShown } from "./views.js";
import {
  details, isDifference, isTold, judged, line, metricOf, paid, phrase, readingOf, saidParts, valued,
} from "./words.js";

const GUESSES = "A ring is a guess that is compatible, a gate that was passed or what is shown to be better, "
  + "a cross one that is not, a dash one of which nothing can be said.";
const SIZE = matchMedia("(max-width: 620px)").matches ? 10 : 25;
let pages;
let chosen = null; // the group that was asked for; else that of the newest answer
let marked = null;

/** Wire the filters. */
export function startAnswers() {
  pages = new Pages(byId("answer-table"), SIZE, "answers", answerTable);
  byId("answer-filters").addEventListener("submit", (event) => event.preventDefault());
  byId("answer-text").addEventListener("input", debounced(150, () => show()));
  byId("answer-mine").addEventListener("change", () => show());
  byId("answer-group").addEventListener("change", (event) => {
    chosen = event.target.value;
    draw();
  });
  onWidth(byId("answer-plot"), draw);
  bus.addEventListener("holdout", () => {
    chosen = marked = null;
    fill(byId("answer-plot"));
    pages.show([]);
  });
  bus.addEventListener("spent", () => { if (currentView() === "answers") load(); });
  whenShown("answers", load);
}

async function load() {
  if (known().length === 0) fill(byId("answer-table"), el("p", { class: "soft", role: "status" }, "Loading…"));
  try {
    if (isCustodian()) await learnNames();
    await transcript();
    show({ keep: true });
  } catch (error) {
    if (!isAbort(error)) trouble(error);
  }
}

/** The rows that the filters leave, newest first. */
function filtered() {
  const wanted = byId("answer-text").value.trim().toLowerCase();
  const mine = byId("answer-mine").checked;
  const fits = (row) => !wanted || line(row.question).toLowerCase().includes(wanted);
  return known().filter((row) => (!mine || row.mine) && fits(row)).reverse();
}

function show(how = {}) {
  const rows = filtered();
  const nothing = known().length === 0;
  byId("answer-filters").hidden = nothing;
  byId("answer-figure").hidden = rows.length === 0;
  if (nothing) fill(byId("answer-table"), empty("Nothing has been asked yet.", "Every answer will be here."));
  else if (rows.length === 0) fill(byId("answer-table"), empty("No answer fits these filters."));
  else pages.show(rows, how);
  grouped(rows);
  draw();
}

/** Answers that can share an axis: those on one grid; guesses with others about the same estimator. */
function groupOf({ question }) {
  const metric = metricOf(question);
  if (isDifference(question)) return [`compare ${metric}`, `differences in ${metric}`];
  if (metric) return [`score ${metric}`, `${metric} of predictions`];
  if (question.grid) return [JSON.stringify(question.grid), `grid ${gridText(question.grid)}`];
  if (question.verb === "mean") {
    const [low, high] = (question.range ?? [0, 1]).map((end) => number(end));
    return [`means ${low} ${high}`, `means from ${low} to ${high}`];
  }
  return [`guess ${line(question)}`, `guesses of ${line(question)}`];
}

function grouped(rows) {
  const groups = new Map();
  for (const row of rows.filter((each) => heightOf(each.answer) !== null)) {
    const [key, label] = groupOf(row);
    groups.set(key, { label, many: (groups.get(key)?.many ?? 0) + 1 });
  }
  const pairs = [...groups].map(([key, { label, many }]) => [key, `${shortened(label, 60)} (${many})`]);
  options(byId("answer-group"), pairs, groups.has(chosen) ? chosen : pairs[0]?.[0]);
}

function draw() {
  const box = byId("answer-plot");
  const key = byId("answer-group").value;
  const rows = filtered().filter((row) => heightOf(row.answer) !== null && groupOf(row)[0] === key);
  if (session.holdout === null || rows.length === 0 || box.clientWidth === 0) return fill(box);
  const shown = rows.slice(0, fitting(box.clientWidth)).reverse();
  const all = rows.length === shown.length;
  const older = all ? "" : ` The newest ${shown.length} of ${counted(rows.length, "answer")} on this grid.`;
  byId("answer-key").textContent = keyText(shown) + older;
  return fill(box, answerPlot(shown, box.clientWidth, reveal));
}

/** What the marks mean, of those that are there. */
function keyText(rows) {
  const has = (test) => rows.some(({ answer }) => test(valued(answer), judged(answer)));
  const words = [];
  if (has((a) => a && a.low !== null)) words.push("A line is an error bar: all of them hold at once.");
  if (has((a) => a && a.low === null && a.high === null)) {
    words.push("A dot without a line has no certified error bar: its promise is about quantiles.");
  }
  if (has((a) => a?.at_grid_end)) words.push("A hollow dot is at the end of its grid.");
  if (has((a, v) => v && !a)) words.push(GUESSES);
  if (rows.some((row) => row.mine === false && valued(row.answer))) words.push("Grey dots are other analysts'.");
  const readings = new Set(rows.map(({ answer }) => readingOf(answer)).filter(Boolean));
  for (const reading of readings) words.push(`Scores are of ${reading}.`);
  return words.join(" ");
}

/** Go to an answer's row. */
function reveal(row) {
  marked = row.number;
  pages.turnTo(pages.rows.findIndex((each) => each.number === row.number));
  const line = byId(`answer-${row.number}`);
  line?.scrollIntoView({ block: "center" });
  line?.querySelector("button")?.focus({ preventScroll: true });
}

function answerTable(rows) {
  const asker = isCustodian();
  const cost = rows.every((row) => isTold(row.answer)) ? "Told" : "Price";
  const columns = [
    { label: "Number", class: "num", counts: true }, { label: "Asked", class: "asked" }, { label: "Answer" },
    { label: cost, class: "num" }, { label: "When (UTC)" }, ...(asker ? [{ label: "Asker" }] : []),
    { label: "Receipt" },
  ];
  const mine = rows.some((row) => row.mine) ? "; yours are marked at the edge" : "";
  const caption = `Answers, newest first${mine}`;
  return table({ caption, columns, rows: rows.map((row) => answerRow(row, asker)), stacks: true, lead: true });
}

function answerRow(row, asker) {
  const { question, answer } = row;
  const price = paid(answer);
  const promise = isTold(answer) ? answer.promise : null; // which has the reading in it
  const more = [details(question), promise ? null : readingOf(answer)].filter(Boolean).join(" · ");
  const cells = [
    [String(row.number), row.mine && el("span", { class: "unseen" }, " mine")].filter(Boolean),
    el("div", {}, ...phrase(question), el("span", { class: "more" }, more)),
    el("div", {}, ...saidParts(answer, question), promise && el("span", { class: "more" }, promise)),
    price === amount(0) ? "0" : price,
    el("time", { class: "nowrap", datetime: row.at }, when(row.at)),
    ...(asker ? [whose(row.asker)] : []),
    receiptButton(row.receipt),
  ];
  const style = [row.mine ? "mine" : "", row.number === marked ? "marked" : ""].join(" ").trim();
  return { cells, id: `answer-${row.number}`, class: style || null };
}
