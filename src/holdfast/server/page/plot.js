// Answers with their error bars, drawn by hand: one place for each answer, oldest left.

import { labelRoom, leftAxis, logTicks, scale, ticks } from "./axes.js";
import { svg } from "./elements.js";
import { number, when } from "./format.js";
import { mark } from "./marks.js";
import { tipped } from "./tip.js";
import { judged, judgedAt, line, saidText, valued } from "./words.js";

const HEIGHT = 290;
const TOP = 14;
const BOTTOM = 40;
const ROOM = 15; // pixels that an answer needs

const HOW = "Left and right go from one to the next, Enter to its row in the table.";

/** How many answers fit into so many pixels. */
export const fitting = (width) => Math.max(8, Math.floor((width - 70) / ROOM));

/** A drawing of these rows; `onChoose` is told which row was chosen. */
export function answerPlot(rows, width, onChoose) {
  const span = extent(rows);
  const isLog = rows[0].question.grid?.scale === "log" && span.low > 0;
  const [low, high] = padded(span, isLog);
  const labels = (isLog ? logTicks : ticks)(low, high, 5);
  const left = labelRoom(labels.map((value) => number(value, 4)));
  const y = scale(low, high, HEIGHT - BOTTOM, TOP, isLog);
  const step = (width - left - 8) / rows.length;
  const x = (place) => left + step * (place + 0.5);
  const points = rows.map((row, i) => point(row, x(i), y, { top: TOP, bottom: HEIGHT - BOTTOM, step }));
  const drawing = svg("svg", {
    width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "group",
    "aria-label": `${rows.length} answers with their error bars. ${HOW}`,
  },
  leftAxis(labels.map((value) => [value, y(value)]), left, width), numbers(rows, x, step),
  svg("text", { x: (left + width) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, "number of the answer"), points);
  roving(drawing, points, (place) => onChoose(rows[place]));
  return drawing;
}

function numbers(rows, x, step) {
  const widest = 10 + 7.2 * String(rows.at(-1).number).length;
  const every = Math.max(1, Math.ceil(widest / step));
  return rows.flatMap((row, i) => (i % every ? [] : [
    svg("text", { x: x(i), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, String(row.number))]));
}

/** The number that an answer is drawn at. */
export function heightOf(said) {
  const verdict = judged(said);
  return valued(said)?.value ?? (verdict ? judgedAt(verdict) : null);
}

function extent(rows) {
  const ends = rows.flatMap(({ answer }) => [heightOf(answer), valued(answer)?.low, valued(answer)?.high])
    .filter((value) => typeof value === "number");
  return { low: Math.min(...ends), high: Math.max(...ends) };
}

function padded({ low, high }, isLog) {
  if (isLog) return [low / 1.15, high * 1.15];
  const room = 0.06 * (high - low) || Math.abs(high) * 0.1 || 1;
  return [low - room, high + room];
}

function point(row, x, y, edge) {
  const answer = valued(row.answer);
  const verdict = judged(row.answer);
  const height = y(heightOf(row.answer));
  const parts = answer ? [...whisker(answer, x, y, edge), dot(row, answer, x, height)]
    : [mark(verdict.verdict, x, height)];
  const half = Math.max(6, edge.step / 2);
  const said = saidText(row.answer, row.question);
  const words = [line(row.question), said, `number ${row.number}, ${when(row.at)} UTC`];
  const group = svg("g", { class: "point", role: "img", tabindex: "-1", "aria-label": words.join(", ") },
    svg("rect", { class: "hit", x: x - half, y: edge.top, width: 2 * half, height: edge.bottom - edge.top }),
    ...parts, svg("circle", { class: "halo", cx: x, cy: height, r: 9 }));
  return tipped(group, words.join("\n"));
}

function dot(row, answer, x, height) {
  const kind = answer.at_grid_end ? "end" : row.mine === false ? "other" : "";
  return svg("circle", { class: `dot ${kind}`, cx: x, cy: height, r: 5 });
}

/** The error bar; an end without a bound is an arrow. */
function whisker(answer, x, y, edge) {
  if (answer.low === null && answer.high === null) return [];
  const bottom = answer.low === null ? edge.bottom - 2 : y(answer.low);
  const top = answer.high === null ? edge.top + 2 : y(answer.high);
  const parts = [svg("line", { class: "whisker", x1: x, x2: x, y1: bottom, y2: top })];
  if (answer.low === null) parts.push(arrow(x, bottom, -5));
  if (answer.high === null) parts.push(arrow(x, top, 5));
  return parts;
}

const arrow = (x, y, by) => svg("path", { class: "open-end", d: `M${x - 4} ${y + by}L${x} ${y}L${x + 4} ${y + by}` });

/** One stop for the tab key; arrows go from point to point. */
function roving(drawing, points, choose) {
  let here = points.length - 1;
  points[here].setAttribute("tabindex", "0");
  const go = (to) => {
    points[here].setAttribute("tabindex", "-1");
    here = Math.min(points.length - 1, Math.max(0, to));
    points[here].setAttribute("tabindex", "0");
    points[here].focus();
  };
  drawing.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: points.length - 1 }[event.key];
    if (to !== undefined) go(to);
    else if (event.key === "Enter") choose(here);
    else return;
    event.preventDefault();
  });
  points.forEach((each, i) => each.addEventListener("click", () => choose(i)));
}
