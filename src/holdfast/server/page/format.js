// Numbers, times and words as people read them.

const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const bare = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
const minus = (text) => text.replace(/^-/, "−");

/** At most so many significant digits; tiny and huge numbers as powers of ten. */
export function number(value, digits = 6) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (size && (size < 1e-4 || size >= 1e9)) {
    const [mantissa, power] = value.toExponential(digits - 1).split("e");
    const raised = [...String(Number(power))].map((sign) => (sign === "-" ? "⁻" : RAISED[sign])).join("");
    return `${minus(bare(mantissa))}×10${raised}`;
  }
  const decimals = size ? Math.max(0, digits - 1 - Math.floor(Math.log10(size))) : 0;
  return fixed(value, Math.min(decimals, digits + 3), true);
}

/** With exactly so many decimals (or, if bare, at most so many). */
function fixed(value, decimals, isBare = false) {
  const plain = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  const text = value.toLocaleString("en-US", plain);
  const shown = isBare ? bare(text) : text;
  return minus(/^-0(\.0*)?$/.test(shown) ? shown.slice(1) : shown);
}

/** A price or a rest of the budget: three significant digits. */
export const amount = (value) => number(value, 3);

/** At most so many letters. */
export const shortened = (text, most) =>
  (text.length > most ? `${text.slice(0, Math.floor(most) - 1)}…` : text);

/** How many. */
export const count = (value) => value.toLocaleString("en-US");

/** `1 question`, `1,000 questions`. */
export const counted = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

/** A share in percent; more than none is never shown as 0, less than all never as 100. */
export function percent(share) {
  if (share > 0 && share < 1e-5) return "<\u00a00.001\u00a0%";
  if (share > 0.999 && share < 1) return ">\u00a099.9\u00a0%";
  const size = 100 * share;
  return `${fixed(size, size < 0.1 ? 3 : size < 1 ? 2 : 1, true)}\u00a0%`;
}

const decimalsOf = (value) => {
  const [mantissa, power = "0"] = String(value).split("e");
  return Math.max(0, (mantissa.split(".")[1] ?? "").length - Number(power));
};

/** The decimals that a point of the grid needs; null where the grid does not say. */
function gridDecimals(grid) {
  if (!grid) return null;
  if (grid.scale === "integer") return 0;
  if (grid.scale === "explicit") return Math.min(8, Math.max(...grid.values.map((v) => decimalsOf(Number(v)))));
  if (grid.scale === "log") return null;
  if (grid.step !== undefined) {
    return Math.min(8, Math.max(decimalsOf(Number(grid.step)), decimalsOf(Number(grid.low))));
  }
  const step = (Number(grid.high) - Number(grid.low)) / Math.max(1, Number(grid.points) - 1);
  return Math.min(8, Math.max(0, 1 - Math.floor(Math.log10(step))));
}

/** A value with the digits of its grid. */
function gridValue(value, grid) {
  if (value === null || value === undefined) return "–";
  const decimals = gridDecimals(grid);
  if (decimals === null || Math.abs(value) >= 1e15) return number(value, 4);
  return fixed(value, decimals);
}

/** Decimals that show a hundredth of a width; null where it is no width. */
function widthDecimals(width) {
  return width > 1e-12 && width < 1e12 ? Math.max(0, 2 - Math.floor(Math.log10(width))) : null;
}

/** The value of an answer: with the digits of its grid or, where that is not known, of its error bar. */
export function answerValue(answer, grid) {
  const bounded = typeof answer.low === "number" && typeof answer.high === "number";
  const decimals = !grid && bounded ? widthDecimals(answer.high - answer.low) : null;
  return decimals === null ? gridValue(answer.value, grid) : fixed(answer.value, decimals);
}

/** An end of an error bar to a hundredth of the bar's width, rounded so that the bar never shrinks. */
function outwards(end, width, up) {
  if (end === null || end === undefined) return up ? "∞" : "−∞";
  const decimals = widthDecimals(width);
  if (decimals === null) return String(end).replace("-", "−");
  const step = 10 ** -decimals;
  const rounded = (up ? Math.ceil(end / step - 1e-9) : Math.floor(end / step + 1e-9)) * step;
  return fixed(rounded, decimals);
}

/** `±0.021`: half of a bar in two digits, never less than it is. */
export function plusMinus(half) {
  const step = 10 ** (Math.floor(Math.log10(half)) - 1);
  return `±${number(Math.ceil(half / step - 1e-9) * step, 2)}`;
}

/** How much is told. */
export const nats = (value) => `${number(value, value >= 10 ? 3 : 2)} nats`;

/** A confidence, never more than it is. */
export const confidence = (value) => number(Math.floor(value * 1e6 + 1e-9) / 1e6, 6);

/** `[0.31, 0.44]`, or nothing where no error bar is certified. */
export function bar(answer) {
  const { low = null, high = null } = answer;
  if (low === null && high === null) return "";
  const width = low === null || high === null ? null : high - low;
  return `[${outwards(low, width, false)}, ${outwards(high, width, true)}]`;
}

/** A grid in words. */
export function gridText(grid) {
  if (!grid) return "the plan's own grid";
  const ends = `${number(Number(grid.low))} to ${number(Number(grid.high))}`;
  if (grid.scale === "explicit") {
    const shown = grid.values.slice(0, 6).map((value) => number(Number(value))).join(", ");
    return grid.values.length > 6 ? `${shown}, … (${count(grid.values.length)} points)` : shown;
  }
  if (grid.scale === "log") return `${ends}, ${count(Number(grid.points))} points in equal ratios`;
  if (grid.step !== undefined) return `${ends} in steps of ${number(Number(grid.step))}`;
  return `${ends}, ${count(Number(grid.points))} points`;
}

/** `16 Nov 2026`, in UTC. */
export function day(text) {
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return String(text ?? "–");
  return `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]} ${at.getUTCFullYear()}`;
}

/** `16 Nov, 09:14` in UTC, as every heading says; the year only where it is another one. */
export function when(text) {
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return String(text ?? "–");
  const two = (value) => String(value).padStart(2, "0");
  const year = at.getUTCFullYear() === new Date().getUTCFullYear() ? "" : ` ${at.getUTCFullYear()}`;
  return `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}${year}, ${two(at.getUTCHours())}:${two(at.getUTCMinutes())}`;
}

/** `7:b7210a29…` for holdout:7:b7210a29…: the row and the start of its digest. */
export function shortReceipt(receipt) {
  const [, row = "", digest = ""] = String(receipt).split(":");
  return row ? `${row}:${digest.slice(0, 8)}…` : String(receipt);
}
