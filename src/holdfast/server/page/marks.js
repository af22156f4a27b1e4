// The shapes of verdicts: a ring for what stands, a cross for what does not, a dash where nothing can be told.

import { svg } from "./elements.js";

/** The shape of a verdict, at a place of a drawing. */
export function mark(verdict, x, y) {
  const stands = ["compatible", "pass", "better"].includes(verdict);
  if (stands) return svg("circle", { class: "mark-compatible", cx: x, cy: y, r: 5 });
  const known = ["not compatible", "fail", "worse"].includes(verdict);
  const [kind, path] = known ? ["refuted", "M-4 -4L4 4M-4 4L4 -4"] : ["unknown", "M-5 0L5 0"];
  return svg("path", { class: `mark-${kind}`, d: path, transform: `translate(${x} ${y})` });
}

/** The shape of a verdict beside its word. */
export const shape = (verdict) =>
  svg("svg", { class: "shape", width: 16, height: 16, "aria-hidden": "true" }, mark(verdict, 8, 8));
