// The question in the form: which fields it has, what they say, whose fault an error is.

import { freshKey } from "./api.js";
import { byId, el, fill, options } from "./elements.js";
import { hasModels, session } from "./session.js";

const VERBS = {
  ask: ["Estimate", "The estimator's value on fresh data, as a point of the grid."],
  mean: ["Mean", "The mean of a term of one row (true is 1); with an error bar, where nothing filters."],
  interval: ["Interval", "An interval that encloses the estimator's median on fresh data."],
  verify: ["Verify", "Whether a guess is compatible with fresh blocks: nearly free while it is."],
  correct: ["Correct", "A guess that is compatible stands; else a value answers in its place."],
};
// Of answers that count what they tell.
const TOLD = {
  ask: "The estimator's median over fresh blocks, between points of the grid.",
  mean: "The mean of a term of one row (true is 1), with its bar.",
  verify: "Whether the estimator's median over fresh blocks is shown to be another than the guess.",
};
const TERM = { name: "Term", help: "A condition such as age >= 65; or a number, with its range if it may leave 0:1." };
const AGGREGATE = { name: "Estimator", help: "An SQL aggregate of one block, such as avg(age) or corr(age, score)." };

// Which field an error names; what is not here is said beside the button.
const FIELDS = {
  question: "estimator", estimator: "estimator", term: "estimator", sql: "estimator", where: "where-text",
  filter: "where-text", range: "range",
  grid: "grid", low: "grid", high: "grid", step: "grid", points: "grid", scale: "grid",
  guess: "guess", tolerance: "tolerance", claim: "claim", by: "part",
};
const INPUTS = [...new Set(Object.values(FIELDS))];

let verbs = {};
let arranged = null; // the verb whose fields are shown
const grids = new Map(); // each verb's own: a grid for days is none for a share

/** Another holdout: nothing that was typed is for it. */
export function forgetGrids() {
  grids.clear();
  arranged = null;
}

/** The chosen verb. */
const verb = () => document.querySelector("input[name=verb]:checked")?.value ?? null;

/** Offer what the plan offers. */
export function offer(found) {
  const before = verb();
  verbs = found;
  const names = Object.keys(VERBS).filter((name) => name in verbs);
  fill(byId("verbs"), names.map((name) => el("label", {},
    el("input", { type: "radio", name: "verb", value: name, "aria-describedby": "verb-help" }), VERBS[name][0])));
  const usual = hasModels() || !names.includes("mean") ? names[0] : "mean";
  const chosen = names.includes(before) ? before : usual;
  const first = document.querySelector(`input[name=verb][value="${chosen}"]`);
  if (first) first.checked = true;
  arrange();
}

/** Show the fields of the verb, and no others. */
export function arrange() {
  const now = verb();
  if (now !== arranged) {
    if (arranged !== null) grids.set(arranged, byId("grid").value);
    byId("grid").value = grids.get(now) ?? "";
    if ([now, arranged].includes("mean")) byId("guess").value = ""; // it was of another kind of question
    arranged = now;
  }
  for (const field of document.querySelectorAll("#ask [data-verbs]")) {
    field.hidden = !field.dataset.verbs.split(" ").includes(now);
  }
  if (now !== "mean") byId("range").value = ""; // it was the last term's
  const text = now === "mean" ? TERM : AGGREGATE;
  byId("estimator-label").textContent = text.name;
  byId("estimator-help").textContent = text.help;
  byId("estimator").placeholder = now === "mean" ? "age >= 65" : "avg(age)";
  const parts = verbs[now] ?? [];
  options(byId("part"), [["", "the plan chooses"], ...parts.map((part) => [part, part])]);
  byId("part-field").hidden = parts.length < 2;
  nearness(parts);
  expected(parts);
}

/** Whether answers count what they tell: then all verbs can be given a guess, and a mean may be precise. */
function expected(parts) {
  const told = (byId("part").value ? [byId("part").value] : parts).includes("told");
  const now = verb();
  const needed = ["verify", "correct"].includes(now);
  byId("verb-help").textContent = (told && TOLD[now]) || (VERBS[now]?.[1] ?? "");
  byId("guess-field").hidden = !needed && !told;
  byId("guess-optional").hidden = needed;
  byId("guess").toggleAttribute("required", needed);
  byId("precise-field").hidden = !told || now !== "mean";
  if (told && now === "mean") byId("grid-field").hidden = true;
  if (told && now === "verify") byId("tolerance-field").hidden = byId("claim").closest(".field").hidden = false;
}

/** A part made for guesses knows what is near, and can be asked for one side; others need a tolerance. */
function nearness(parts) {
  const chosen = byId("part").value;
  const able = (chosen ? [chosen] : parts).some((part) => part.includes("verify"));
  byId("tolerance-field").hidden = verb() !== "verify" || able;
  byId("claim").closest(".field").hidden = verb() !== "verify" || !able;
}

/** What the form asks, as the server takes it, or the field that stands in the way. */
export function gathered() {
  const text = (id) => byId(id).value.trim();
  const seen = (id) => text(id) !== "" && !byId(id).closest(".field").hidden;
  const now = verb();
  if (!now || !text("estimator")) return { missing: "Write a question to see its price." };
  const body = { [now === "mean" ? "term" : "estimator"]: text("estimator") };
  if (seen("where-text")) body.where = text("where-text");
  if (seen("range")) {
    const ends = text("range").split(":").map((end) => Number(end.replace("−", "-") || NaN));
    const pair = ends.length === 2 && ends.every(Number.isFinite);
    if (!pair) return { wrong: "range", message: "range must be LOW:HIGH, two numbers." };
    body.range = ends;
  }
  if (seen("grid")) body.grid = text("grid");
  if (seen("part")) body.protocol = text("part");
  if (seen("claim") && byId("claim").value !== "equals") body.claim = byId("claim").value;
  for (const id of ["guess", "tolerance"]) {
    if (seen(id)) {
      const value = Number(text(id).replace("−", "-"));
      if (!Number.isFinite(value)) return { wrong: id, message: `${id} must be a number.` };
      body[id] = value;
    }
  }
  if (byId("precise").checked && !byId("precise-field").hidden) body.precise = true;
  if (byId("anyway").checked) body.anyway = true;
  if (["verify", "correct"].includes(now) && body.guess === undefined) {
    return { missing: "Write a guess to see the price." };
  }
  return { verb: now, body };
}

/** A grid as it was typed, for the digits of its points; null where nothing, or nothing good, was. */
export function typedGrid(text = "") {
  const [low, high, step] = text.split(":").map(Number);
  if (text.includes(":")) return Number.isFinite(step) ? { scale: "linear", low, high, step } : null;
  const values = text.split(",").map(Number);
  return text && values.every(Number.isFinite) ? { scale: "explicit", values } : null;
}

/** Say an error where it belongs, and nowhere else; without one, all is well. */
export const blame = (message = "", parameter = null) => blameAll(message === "" ? [] : [{ message, parameter }]);

/** Likewise for several. */
export function blameAll(faults) {
  const said = new Map(INPUTS.map((id) => [id, []]));
  const rest = [];
  for (const { message, parameter } of faults) {
    const field = FIELDS[parameter];
    const seen = field !== undefined && !byId(field).closest(".field").hidden;
    (seen ? said.get(field) : rest).push(message);
  }
  for (const [id, messages] of said) {
    byId(`${id}-error`).textContent = messages.join(" ");
    if (messages.length > 0) byId(id).setAttribute("aria-invalid", "true");
    else byId(id).removeAttribute("aria-invalid");
  }
  byId("ask-error").textContent = rest.join(" ");
}

/** Offer to ask a question that was refused as a slip; or, if there is none, take the offer back. */
export function offerAnyway(doubtful) {
  byId("anyway-field").hidden = !doubtful;
  if (!doubtful) byId("anyway").checked = false;
}

// One key for one content of the form: a double click or a retry is the same request.
const keys = new Map();

const contentOf = (asked) => JSON.stringify([session.holdout.name, asked.verb, asked.body]);

/** The key of this question. */
export function keyOf(asked) {
  const content = contentOf(asked);
  if (!keys.has(content)) keys.set(content, freshKey());
  return keys.get(content);
}

/** A question that was given up: asked again, it is a new request. */
export function forgetKey(asked) {
  keys.delete(contentOf(asked));
}
