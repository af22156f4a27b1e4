// The leaderboard: ranks with their ties, scores with their error bars.

import { Newest, isAbort, send } from "./api.js";
import { scale, ticks } from "./axes.js";
import { catalog } from "./catalog.js";
import { byId, el, empty, fill, options, svg } from "./elements.js";
import { answerValue, bar, number, when } from "./format.js";
import { wantEntry } from "./models.js";
import { forgetNeighbours, offerNeighbours } from "./neighbours.js";
import { bus, mayAsk, path } from "./session.js";
import { receiptButton, table } from "./table.js";
import { trouble } from "./trouble.js";
import { currentView, whenShown } from "./views.js";

const newest = new Newest();
const WIDE = 200;

/** Wire the view. */
export function startLeaderboard() {
  byId("board-metric").addEventListener("change", load);
  bus.addEventListener("holdout", () => {
    newest.cancel();
    fill(byId("board-table"));
    fill(byId("board-metric"));
    forgetNeighbours();
  });
  bus.addEventListener("spent", () => { if (currentView() === "leaderboard") load(); });
  byId("submit-entry").addEventListener("click", wantEntry);
  whenShown("leaderboard", open);
}

async function open() {
  try {
    const found = await catalog();
    byId("submit-entry").hidden = !mayAsk();
    options(byId("board-metric"), found.metrics.map((name) => [name, name]));
    await load();
  } catch (error) {
    if (!isAbort(error)) trouble(error);
  }
}

async function load() {
  const signal = newest.next();
  const box = byId("board-table");
  if (!box.firstChild) fill(box, el("p", { class: "soft", role: "status" }, "Loading…"));
  try {
    const metric = byId("board-metric").value;
    const board = await send("GET", path(`leaderboard?metric=${encodeURIComponent(metric)}`), { signal, retries: 2 });
    const none = empty("No entry yet.", "Submit predictions to be the first.");
    fill(box, board.entries.length ? boardTable(board) : none);
    const { verbs } = await catalog();
    if (mayAsk() && verbs.compare?.includes("told")) offerNeighbours(board);
  } catch (error) {
    if (isAbort(error)) return;
    fill(box);
    trouble(error);
  }
}

function boardTable(board) {
  const place = spread(board.entries);
  const columns = [
    { label: "Rank", counts: true }, { label: "Entry" }, { label: "Score", class: "num" },
    { label: "Error bar", unseen: true, drawn: ruler(place) }, { label: "When (UTC)" }, { label: "Receipt" },
  ];
  const better = board.greater_is_better === false ? "less is better" : "more is better";
  const tied = board.entries.some((entry) => rankText(entry) !== String(entry.rank));
  const ties = tied ? "; entries whose error bars overlap share a range of ranks" : "";
  return table({
    stacks: true, caption: `Entries by ${board.metric}: ${better}${ties}. Scores of ${board.reading_words}.`
      + (board.certified ? "" : " Seeded: nothing is certified."),
    columns, lead: true,
    rows: board.entries.map((entry) => ({ cells: entryCells(entry, place), class: entry.mine ? "mine" : null })),
  });
}

/** `2`, or `1–3` where the error bars leave it open. */
function rankText({ rank, rank_low: low, rank_high: high }) {
  if (low === null || high === null || low === high) return String(rank ?? "–");
  return `${low}–${high}`;
}

function entryCells(entry, place) {
  const marks = [];
  if (entry.submissions > 1) marks.push(`best of ${entry.submissions}`);
  if (entry.mine) marks.push(el("span", { class: "pill plain" }, "yours"));
  return [
    el("span", { class: "nowrap" }, rankText(entry)),
    el("div", {}, entry.name, marks.length > 0 && el("span", { class: "more" }, marks.flatMap((mark) => [mark, " "]))),
    entry.value === null ? "–" : scored(entry),
    entry.value === null ? "" : spark(entry, place),
    el("time", { class: "nowrap", datetime: entry.at }, when(entry.at)),
    receiptButton(entry.receipt),
  ];
}

function scored(entry) {
  const value = el("span", { class: "value" }, answerValue(entry, null));
  return el("div", {}, value, el("span", { class: "interval" }, bar(entry)));
}

/** One scale for all entries. */
function spread(entries) {
  const numbers = entries.flatMap((entry) => [entry.value, entry.low, entry.high]);
  const ends = numbers.filter((value) => typeof value === "number");
  const [low, high] = ends.length ? [Math.min(...ends), Math.max(...ends)] : [0, 1];
  const room = 0.04 * (high - low) || 0.01;
  return { low: low - room, high: high + room };
}

/** The scale itself, over the drawings. */
function ruler({ low, high }) {
  const x = scale(low, high, 4, WIDE - 4);
  const labels = ticks(low, high, 4).map((value) =>
    svg("text", { x: x(value), y: 13, "text-anchor": "middle" }, number(value, 4)));
  return svg("svg", { class: "spark", width: WIDE, height: 16, "aria-hidden": "true" }, labels);
}

/** The error bar of one entry; the table's text says the same. */
function spark(entry, { low, high }) {
  const x = scale(low, high, 4, WIDE - 4);
  const from = x(entry.low ?? low);
  const to = x(entry.high ?? high);
  const certified = entry.low !== null || entry.high !== null;
  return svg("svg", { class: "spark", width: WIDE, height: 22, "aria-hidden": "true" },
    svg("line", { class: "rule", x1: 0, x2: WIDE, y1: 11, y2: 11 }),
    certified && svg("line", { class: "whisker", x1: from, x2: to, y1: 11, y2: 11 }),
    svg("circle", { class: entry.mine ? "dot" : "dot other", cx: x(entry.value), cy: 11, r: 4.5 }));
}
