// The fields of a question about models: which each verb has, what they say, whose fault an error is.

import { byId, el, fill, options } from "./elements.js";

const GOALS = {
  at_least: "at least a threshold", at_most: "at most a threshold", better_than: "better than the incumbent",
};
const EXPECTED = "Left out, the open part says what to expect. If it is about right, almost nothing is told.";
// In the order of the form; with `told`, only where answers count what they tell.
const FIELDS = [
  { name: "name", label: "Name of the entry", verbs: "enter", maxlength: 80 },
  { name: "metric", label: "Metric", verbs: "score compare gate best scores enter", pairs: [] },
  { name: "goal", label: "It passes if it is", verbs: "gate", pairs: Object.entries(GOALS) },
  { name: "threshold", label: "Threshold", verbs: "gate", numeric: true },
  { name: "margin", label: "Margin", verbs: "compare gate", numeric: true, optional: true,
    help: "By how much it must be better; 0 for by anything." },
  { name: "tolerance", label: "Tolerance", verbs: "gate", numeric: true, optional: true,
    help: "A pass proves so much less." },
  { name: "guess", label: "Expected score", verbs: "score compare gate enter", numeric: true, optional: true,
    told: true, help: EXPECTED },
];
// Which field an error of the server names, where it is not called as the parameter is.
const BLAMED = { at_least: "threshold", at_most: "threshold", better_than: "other", against: "other", body: "file",
  predictions: "file", candidates: "file" };
const PLACES = ["file", "other", "names", ...FIELDS.map(({ name }) => name)];

/** An element of the form. */
export const field = (name) => byId(`model-${name}`);

/** What a field says, and whether it is shown. */
export const text = (name) => field(name).value.trim();
export const seen = (name) => !field(name).closest(".field").hidden;

/** A number as it was typed; NaN where it is none. */
export const numeric = (value) => (value === "" ? NaN : Number(value.replace("−", "-")));

/** Put all fields into the form. */
export function makeFields() {
  fill(field("fields"), FIELDS.map(({ name, label, verbs, pairs, help, optional, told, ...more }) => {
    const id = `model-${name}`;
    const said = `${help ? `${id}-help ` : ""}${id}-error`;
    const given = { id, "aria-describedby": said };
    const typing = { autocomplete: "off", maxlength: more.maxlength, inputmode: more.numeric ? "decimal" : null };
    const input = pairs ? el("select", given) : el("input", { ...given, ...typing });
    if (pairs) options(input, pairs);
    return el("div", { class: "field", "data-verbs": verbs, "data-told": told },
      el("label", { for: id }, `${label} `, optional && el("span", { class: "optional" }, "optional")), input,
      help && el("p", { class: "help", id: `${id}-help` }, help),
      el("p", { class: "error", id: `${id}-error`, "aria-live": "polite" }));
  }));
}

/** Show the fields of this verb, and no others. */
export function arrangeFields(verb, told) {
  for (const each of document.querySelectorAll("#models [data-verbs]")) {
    each.hidden = !each.dataset.verbs.split(" ").includes(verb) || (!told && "told" in each.dataset);
  }
  const incumbent = againstIncumbent(verb);
  const hide = (name, hidden) => { field(name).closest(".field").hidden ||= hidden; };
  hide("other", verb === "gate" && !incumbent);
  hide("margin", verb === "gate" && !incumbent);
  hide("threshold", incumbent);
  expect(`${field("metric").value} ${verb === "compare" || incumbent ? "difference" : "score"}`);
}

/** A guess of one kind is none of another: it is forgotten. */
function expect(kind) {
  if (field("guess").dataset.kind !== kind) field("guess").value = "";
  field("guess").dataset.kind = kind;
  field("guess").labels[0].firstChild.data = `Expected ${kind.split(" ")[1]} `;
}

/** Whether this is a gate against other predictions. */
export const againstIncumbent = (verb) => verb === "gate" && field("goal").value === "better_than";

/** The numbers that were typed into fields that are shown, by their names; or which field has none. */
export function numbers() {
  const found = {};
  for (const { name, label } of FIELDS.filter((each) => each.numeric && seen(each.name) && text(each.name))) {
    found[name] = numeric(text(name));
    if (!Number.isFinite(found[name])) return { wrong: name, message: `${label} must be a number.` };
  }
  return found;
}

/** Say errors where they belong, and nowhere else; without any, all is well. */
export function blame(faults) {
  const rest = [];
  const said = new Map(PLACES.map((name) => [name, []]));
  for (const { message, parameter } of faults) {
    const name = BLAMED[parameter] ?? parameter;
    (said.has(name) && seen(name) ? said.get(name) : rest).push(message);
  }
  for (const [name, messages] of said) {
    field(`${name}-error`).textContent = messages.join(" ");
    if (messages.length > 0) field(name).setAttribute("aria-invalid", "true");
    else field(name).removeAttribute("aria-invalid");
  }
  field("error").textContent = rest.join(" ");
}
