// The planner's drawings: methods side by side, and their errors as questions grow more.

import { bottomAxis, labelRoom, leftAxis, logTicks, scale, ticks } from "./axes.js";
import { el, svg } from "./elements.js";
import { count, number, shortened } from "./format.js";
import { tipped } from "./tip.js";

const ROW = 46;

/** One bar for each method: the shorter, the better. */
export function methodPlot(methods, width) {
  const known = methods.filter((each) => each.half_width !== null);
  const most = Math.max(...known.map((each) => each.half_width), 1e-9);
  const x = scale(0, most, 0, Math.max(60, width - 96));
  const height = ROW * methods.length + 6;
  const bars = methods.flatMap((each, i) => {
    const y = ROW * i;
    const isKnown = each.half_width !== null;
    const size = isKnown ? Math.max(2, x(each.half_width)) : 0;
    const text = isKnown ? `± ${number(each.half_width, 3)}` : "no certified error";
    return [
      svg("text", { class: "name", x: 0, y: y + 15 }, shortened(each.label, width / 7.2)),
      svg("g", { class: each.colour }, svg("rect", {
        class: `amount${dashed(each)}`, x: each.certified ? 0 : 1, y: y + 22, width: size, height: 13, rx: 3,
      })),
      svg("text", { class: "strong", x: size + 8, y: y + 33 }, text),
    ];
  });
  return drawing(width, height, `Error by method: ${spoken(methods)}`, bars);
}

const error = (method) => (method.half_width === null ? "none" : number(method.half_width, 3));

const spoken = (methods) => methods.map((each) => `${each.label} ${error(each)}`).join(", ");

const dashed = (method) => (method.certified ? "" : " uncertified");

function drawing(width, height, label, ...drawn) {
  const given = { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label };
  return svg("svg", given, ...drawn);
}

/** Error against the number of questions, both in equal ratios; a dashed line is not certified. */
export function curvePlot(plan, methods, width) {
  const height = 300;
  const points = (name) => plan.curve.filter((each) => typeof each[name] === "number" && each[name] > 0);
  const all = methods.flatMap(({ name }) => points(name).map((each) => each[name]));
  if (all.length === 0) return svg("svg", { width, height: 4 });
  const [low, high] = [Math.min(...all) / 1.15, Math.max(...all) * 1.15];
  const many = plan.curve.map((each) => each.queries);
  const [first, last] = [Math.min(...many), Math.max(...many)];
  let labels = logTicks(low, high, 7);
  if (labels.length < 2) labels = ticks(low, high, 4);
  const left = labelRoom(labels.map((value) => number(value, 3)));
  const right = width - 30;
  const x = scale(first, last, left, right, true);
  const y = scale(low, high, height - 42, 10, true);
  const here = Math.min(last, Math.max(first, plan.queries));
  const along = logTicks(first, last, Math.floor(width / 90)).map((value) => [value, x(value)]);
  return drawing(width, height, "Error by the number of questions, one line for each method; the table has the numbers",
    leftAxis(labels.map((value) => [value, y(value)]), left, right, (value) => number(value, 3)),
    bottomAxis(along, left, right, height - 42, count),
    svg("text", { x: (left + right) / 2, y: height - 4, "text-anchor": "middle" }, "questions"),
    svg("line", { class: "here", x1: x(here), x2: x(here), y1: 10, y2: height - 42 }),
    methods.map((each) => series(each, points(each.name), x, y)));
}

function series(method, points, x, y) {
  const places = points.map((each) => `${x(each.queries).toFixed(1)} ${y(each[method.name]).toFixed(1)}`);
  const path = places.length ? `M${places.join("L")}` : "";
  const line = svg("path", { class: `series${dashed(method)}`, d: path });
  const roomy = points.length < 2 || x(points[1].queries) - x(points[0].queries) > 12;
  const dots = (roomy ? points : []).map((each) => tipped(
    svg("circle", { class: "series-dot", cx: x(each.queries), cy: y(each[method.name]), r: 3.2 }),
    `${method.label}\n${count(each.queries)} questions: ± ${number(each[method.name], 3)}`));
  return svg("g", { class: method.colour }, path ? line : null, dots);
}

/** Which line is which. */
export function legend(methods) {
  return el("ul", { class: "legend" }, methods.map((each) => el("li", { class: each.colour },
    svg("svg", { width: 24, height: 10, "aria-hidden": "true" },
      svg("line", { class: `series${dashed(each)}`, x1: 2, x2: 22, y1: 5, y2: 5 })),
    el("span", {}, each.label))));
}
