// A told answer as a picture: the bar of each candidate, beside what it is compared with.

import { bottomAxis, scale, ticks } from "./axes.js";
import { svg } from "./elements.js";
import { answerValue, bar, number, shortened } from "./format.js";
import { mark } from "./marks.js";

const FOOT = 42; // pixels of the axis with its labels
const EDGE = 22; // pixels left and right of the axis
const LETTER = 6.7; // pixels of a letter, about

/** A picture of this answer, so wide; null where there is nothing to draw. */
export function barPicture(said, width) {
  if (said.verb === "verify") return null;
  const { rows, lines = [], sides = null } = contents(said);
  const tops = [lines.length ? 20 : 2];
  for (const row of rows) tops.push(tops.at(-1) + (row.place && !row.batched ? 26 : 44));
  const foot = tops.at(-1);
  const numbers = [...rows.flatMap((row) => [row.low, row.high, row.value, guessOf(row)]), ...lines.map(({ at }) => at)]
    .filter((each) => typeof each === "number");
  const height = numbers.length === 0 ? foot : foot + FOOT + (sides ? 18 : 0);
  const [low, high] = numbers.length === 0 ? [0, 1] : ends(numbers, rows, said.facts.share && !said.facts.against);
  const x = scale(low, high, EDGE, width - EDGE);
  const places = ticks(low, high, Math.max(2, Math.floor(width / 90))).map((value) => [value, x(value)]);
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": said.promise },
    lines.flatMap((line) => vertical(line, x(line.at), foot, width)),
    rows.flatMap((row, i) => [...named(row, tops[i], width), ...drawn(row, tops[i] + 30, x, width)]),
    numbers.length > 0 && bottomAxis(places, EDGE, width - EDGE, foot + 4),
    sides && sidesOf(sides, foot + FOOT + 6, width));
}

/** What is drawn: rows with their bars, lines across them, and what is at both sides. */
function contents(said) {
  if (said.verb === "best" || said.batch.length > 0) return ofSeveral(said);
  return said.facts.against ? ofDifference(said) : ofOne(said);
}

/** A score or a mean; of a gate, the threshold and on which side of it the score is proved to be. */
function ofOne(said) {
  const { threshold, claim } = said.facts;
  const row = { ...said, name: said.about };
  if (threshold === undefined) return { rows: [row] };
  return { rows: [{ ...row, at: threshold }], lines: [{ at: threshold, name: `${claim} ${number(threshold)}` }] };
}

/** A difference, turned so that more is better; with zero, and what is asked for. */
function ofDifference({ names, low, high, value, guess, expected, verdict, facts }) {
  const turn = (each) => (facts.greater === false && each !== null ? 0 - each : each);
  const bounds = [turn(low), turn(high)];
  if (facts.greater === false) bounds.reverse();
  const gated = turn(facts.threshold ?? 0); // of a gate; of a comparison the margin counts on both sides
  const margin = facts.margin ?? 0;
  const at = { better: margin, worse: -margin, "not shown": 0 }[verdict] ?? gated;
  const far = [...new Set([-margin, margin, gated])].filter(Boolean);
  const lines = far.map((each) => ({ at: each, name: `${number(Math.abs(each))} ${each > 0 ? "better" : "worse"}` }));
  return {
    rows: [{ name: names.join(" against "), low: bounds[0], high: bounds[1], value: turn(value), guess: turn(guess),
      expected, verdict, at }],
    lines: [{ at: 0, name: lines.length > 0 ? "" : "no difference" }, ...lines],
    sides: [`${names[1]} is better`, `${names[0]} is better`],
  };
}

/** All candidates, each with its bar; or which of them is the best, with its bar if it was asked for. */
function ofSeveral({ verb, names, winner, batch }) {
  if (verb !== "best") return { rows: batch.map((each, i) => ({ ...each, name: names[i] })) };
  const best = { ...batch[0], batched: batch.length > 0, name: `${names[winner]}: best`, place: "first" };
  return { rows: names.map((name, i) => (i === winner ? best : { name, place: "other" })) };
}

/** The ends of the axis: room for what is drawn, more where a bar has no end, and none outside of 0 to 1. */
function ends(numbers, rows, share) {
  const [least, most] = [Math.min(...numbers), Math.max(...numbers)];
  const isOpen = rows.some((row) => row.verdict);
  const room = isOpen ? Math.max(0.6 * (most - least), 0.05) : 0.1 * (most - least) || 0.05;
  return share ? [Math.max(0, least - room), Math.min(1, most + room)] : [least - room, most + room];
}

/** The guess, where the answer is a value and not the one that was guessed. */
const guessOf = ({ guess = null, verdict = null, expected }) => (!verdict && expected === false ? guess : null);

/** A row's name and its numbers; among several of which one is the best, a dot that is filled or not. */
function named({ name, place, low, high, value = null }, y, width) {
  const known = value === null ? "" : `${answerValue({ low, high, value }, null)} ${bar({ low, high })}`;
  const text = shortened(name, Math.max(8, (width - 2 * EDGE) / LETTER - known.length - 5));
  const other = place === "other";
  return [
    place && svg("circle", { class: other ? "dot none" : "dot", cx: EDGE + 5, cy: y + 12, r: 5 }),
    svg("text", { class: other ? "name other" : "name strong", x: EDGE + (place ? 18 : 0), y: y + 16 }, text),
    known && svg("text", { class: "name other", x: width - EDGE, y: y + 16, "text-anchor": "end" }, known),
  ];
}

/** The bar of a row, with an arrow where it has no end; its value, its guess, and the shape of its verdict. */
function drawn(row, y, x, width) {
  const { low = null, high = null, value = null, verdict = null, at } = row;
  const guess = guessOf(row);
  const from = low === null ? EDGE : x(low);
  const to = high === null ? width - EDGE : x(high);
  const known = low !== null || high !== null;
  return [
    known && svg("line", { class: "whisker", x1: from, x2: to, y1: y, y2: y }),
    known && low === null && arrow(from, y, 5),
    known && high === null && arrow(to, y, -5),
    guess !== null && diamond(x(guess), y),
    value !== null && svg("circle", { class: "dot", cx: x(value), cy: y, r: 5 }),
    verdict && mark(verdict, x(at), y),
  ];
}

const diamond = (x, y) =>
  svg("path", { class: "mark-guess", d: "M0 -6L6 0L0 6L-6 0Z", transform: `translate(${x} ${y})` });

const arrow = (x, y, by) => svg("path", { class: "open-end", d: `M${x + by} ${y - 4}L${x} ${y}L${x + by} ${y + 4}` });

/** A line across all rows; what is left of zero is named to its left, so that names do not meet. */
function vertical({ at, name }, x, foot, width) {
  const anchor = at < 0 ? "end" : name.endsWith("better") ? "start" : "middle";
  const long = name.length * LETTER;
  const [before, after] = { end: [long, 0], start: [0, long], middle: [long / 2, long / 2] }[anchor];
  const place = Math.min(Math.max(x, before), width - after);
  return [
    svg("line", { class: "here", x1: x, x2: x, y1: 16, y2: foot + 4 }),
    name && svg("text", { x: place, y: 12, "text-anchor": anchor }, name),
  ];
}

/** Who is better on which side of zero. */
function sidesOf([left, right], y, width) {
  const most = (width - 2 * EDGE) / 2 / LETTER - 3;
  return [
    svg("text", { x: EDGE, y }, `← ${shortened(left, most)}`),
    svg("text", { x: width - EDGE, y, "text-anchor": "end" }, `${shortened(right, most)} →`),
  ];
}
