// Scales and ticks: from numbers to places, and round numbers to label.

import { svg } from "./elements.js";
import { number } from "./format.js";

const NICE = [1, 2, 2.5, 5, 10];

/** About so many round numbers from low to high. */
export function ticks(low, high, many) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const rough = span / Math.max(1, many);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * NICE.find((each) => each * power >= rough * 0.75);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * span; i += 1) {
    found.push(Number((i * step).toPrecision(12)));
  }
  return found;
}

/** Powers of ten, with 2 and 5 between them where there is room. */
export function logTicks(low, high, many) {
  const found = [];
  const decades = Math.log10(high / low);
  const steps = decades * 3 <= many ? [1, 2, 5] : [1];
  const every = Math.max(1, Math.ceil(decades / many));
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high) + 1e-9; power += 1) {
    if (power % every) continue;
    for (const step of steps) {
      const value = Number((step * 10 ** power).toPrecision(12));
      if (value >= low * 0.999999 && value <= high * 1.000001) found.push(value);
    }
  }
  return found;
}

/** From [low, high] to [from, to], in equal steps or equal ratios. */
export function scale(low, high, from, to, isLog = false) {
  const put = isLog ? Math.log : (value) => value;
  const [first, last] = [put(low), put(high)];
  return (value) => from + ((put(value) - first) / (last - first || 1)) * (to - from);
}

/** Horizontal rules with labels at the left edge of a plot. */
export function leftAxis(places, x0, x1, format = (value) => number(value, 4)) {
  return places.flatMap(([value, y]) => [
    svg("line", { class: "rule", x1: x0, x2: x1, y1: y, y2: y }),
    svg("text", { x: x0 - 8, y: y + 4, "text-anchor": "end" }, format(value)),
  ]);
}

/** Labels under a plot, with small ticks. */
export function bottomAxis(places, x0, x1, y, format = (value) => number(value, 4)) {
  return [
    svg("line", { class: "axis", x1: x0, x2: x1, y1: y, y2: y }),
    ...places.flatMap(([value, x]) => [
      svg("line", { class: "axis", x1: x, x2: x, y1: y, y2: y + 4 }),
      svg("text", { x, y: y + 18, "text-anchor": "middle" }, format(value)),
    ]),
  ];
}

/** The room that the longest label takes. */
export const labelRoom = (texts) => 14 + 7.2 * Math.max(0, ...texts.map((text) => text.length));
