// The view for models: files of predictions, what is asked of them, its price, and the answer.

import { freshKey, isAbort, send } from "./api.js";
import { catalog } from "./catalog.js";
import { byId, el, fill, options } from "./elements.js";
import {
  againstIncumbent, arrangeFields, blame, field, makeFields, numbers, numeric, seen, text,
} from "./fields.js";
import { allowMany, bodyOf, choose, filesOf, forgetFiles, nameCandidates, typedOf } from "./predictions.js";
import { Price } from "./price.js";
import { resultCard } from "./result.js";
import { bus, mayAsk, path, session, spent } from "./session.js";
import { trouble, worded } from "./trouble.js";
import { whenShown } from "./views.js";

const VERBS = {
  score: ["Score", "How good predictions are on fresh data: a value with its bar."],
  compare: ["Compare", "By how much the new ones are better than the old ones, on the same rows. With a margin, 0 too, "
    + "a verdict in place of a bar: better, worse, or not shown."],
  gate: ["Gate", "Whether they are proved to reach a threshold (pass), to miss it (fail), or neither (unclear)."],
  best: ["Best of many", "Which of several is the best on the sealed rows, and nothing else of the others. "
    + "Precise: also its bar."],
  scores: ["Scores of many", "The scores of several, all of them fixed before any is answered."],
  enter: ["Enter", "A score that is also an entry of the leaderboard."],
};
const MANY = ["best", "scores"];

let price;
let told = []; // the metrics whose answers count what they tell
let key = null; // one for each content of the form
let busy = false;
let wanted = null; // the verb that another view leads to

/** Wire the form. */
export function startModels() {
  makeFields();
  const form = byId("models");
  price = new Price(field("price"), { gathered, look, blame, doubtful: () => {}, became: enable });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  form.addEventListener("input", ({ target }) => { if (target.type !== "file") changed(); });
  form.addEventListener("change", async ({ target }) => {
    if (target.type === "file") {
      const reading = choose(target.id);
      changed(); // what was chosen before is no longer
      await reading;
    } else if (target.type !== "radio" && ![field("goal"), field("metric")].includes(target)) return;
    arrange();
  });
  bus.addEventListener("holdout", () => {
    form.reset();
    forgetFiles();
    fill(field("verbs")); // they were another holdout's
    changed();
  });
  whenShown("models", open);
}

/** Lead to the form for an entry. */
export function wantEntry() {
  wanted = "enter";
}

async function open() {
  try {
    byId("models").hidden = !mayAsk();
    byId("models-note").hidden = mayAsk();
    offer(await catalog());
  } catch (error) {
    if (!isAbort(error)) trouble(error);
  }
}

const verb = () => document.querySelector("input[name=model-verb]:checked")?.value ?? null;

/** Offer what the holdout answers. */
function offer({ verbs, metrics, over_rows: overRows, labels, ids }) {
  const names = Object.keys(VERBS).filter((name) => name in verbs || ["score", "enter"].includes(name));
  const isNew = field("verbs").childElementCount === 0;
  if (!isNew && wanted === null) return price.ready === null ? price.again() : undefined;
  if (isNew) {
    const radio = { type: "radio", name: "model-verb", "aria-describedby": "model-verb-help" };
    fill(field("verbs"), names.map((value) => el("label", {}, el("input", { ...radio, value }), VERBS[value][0])));
    options(field("metric"), metrics.map((name) => [name, name]));
    told = verbs.score?.includes("told") ? overRows : [];
    const known = labels ? ` Labels are ${labels.join(", ")}.` : "";
    field("file-help").textContent = `CSV, Parquet or JSON with columns ${ids} and prediction, for every row.${known} `
      + "What is wrong with a file is said, and nothing is told or charged.";
  }
  document.querySelector(`input[name=model-verb][value="${wanted ?? names[0]}"]`).checked = true;
  wanted = null;
  return arrange();
}

/** Show the fields of the verb and of its files, and no others. */
function arrange() {
  const now = verb();
  field("verb-help").textContent = VERBS[now][1];
  const first = now === "compare" ? "New predictions" : "Predictions";
  field("file-label").textContent = MANY.includes(now) ? "Predictions of all candidates" : first;
  field("other-label").textContent = now === "gate" ? "Predictions of the incumbent" : "Old predictions";
  arrangeFields(now, told.includes(field("metric").value));
  allowMany(MANY.includes(now));
  const apart = now === "compare" || MANY.includes(now) ? files().filter((each) => !each.fault) : [];
  field("names").closest(".field").hidden = apart.length === 0;
  nameCandidates(apart, now === "scores");
  changed();
}

/** All files, in the order in which they are sent. */
const files = () => [...filesOf("model-file"), ...(seen("other") ? filesOf("model-other") : [])];

const wrong = (name, message) => ({ wrong: name, message });

/** What the form asks, as the server takes it; or what is missing, or the field that stands in the way. */
function gathered() {
  const now = verb();
  const sent = now === null ? [] : files(); // until it is known what can be asked, nothing is
  for (const name of ["file", "other"]) {
    const fault = seen(name) && filesOf(`model-${name}`).find((each) => each.fault);
    if (fault) return wrong(name, fault.fault);
  }
  const two = MANY.includes(now) || seen("other");
  if (sent.length < (two ? 2 : 1)) {
    return { missing: two ? "Choose two files to see the price." : "Choose a file to see the price." };
  }
  const typed = numbers();
  if (typed.wrong) return typed;
  if (now === "gate" && seen("threshold") && typed.threshold === undefined) {
    return { missing: "Write a threshold to see the price." };
  }
  if (now === "enter" && !text("name")) return { missing: "Name the entry to see the price." };
  const names = typedOf("named");
  const guesses = typedOf("expected");
  const fault = faultOf(names, guesses);
  if (fault) return wrong("names", fault);
  const precise = field("precise").checked && !field("precise-field").hidden;
  const { threshold, ...words } = typed;
  if (threshold !== undefined) words[field("goal").value] = threshold;
  if (guesses.some(Boolean)) words.guesses = guesses.map((each) => each && numeric(each)).join(",");
  if (precise) words.precise = true;
  const query = new URLSearchParams({ metric: field("metric").value, ...words });
  const body = bodyOf(againstIncumbent(now) ? ["predictions", "better_than"] : names, sent);
  return { verb: now, query, body, names, question: question(now, { ...typed, precise }, names, sent) };
}

function faultOf(names, guesses) {
  if (names.includes("")) return "Every candidate needs a name.";
  if (new Set(names).size < names.length) return "Candidates need different names.";
  const good = guesses.every((each) => !each || Number.isFinite(numeric(each)));
  return good ? null : "What you expect of a candidate must be a number.";
}

/** The question in the words that the ledger has for it. */
function question(now, typed, names, sent) {
  const incumbent = againstIncumbent(now);
  const of = incumbent || names.length === 0 ? ` of ${sent.map(({ name }) => name).join(" against ")}` : "";
  return {
    ...typed, verb: now, candidates: sent.length, name: field("name").value.trim(),
    ...(now === "gate" && { claim: field("goal").value.replace("_", " "), threshold: typed.threshold ?? 0 }),
    estimator: { text: `${field("metric").value}${of}`, names: incumbent ? ["this one", "the incumbent"] : names },
  };
}

/** The price of an entry is that of its score. */
const look = (asked, signal) =>
  send("POST", path(`price/${asked.verb === "enter" ? "score" : asked.verb}?${asked.query}`),
    { ...asked.body, signal, retries: 2 });

function changed() {
  key = null;
  fill(field("result")); // it was the answer to another question
  price.changed();
}

function enable() {
  field("button").disabled = busy || price.ready === null || !mayAsk();
}

async function submit() {
  const asked = price.ready;
  if (busy || asked === null) return;
  busy = true;
  enable();
  field("button").textContent = "Asking…";
  const { holdout } = session;
  key ??= freshKey();
  try {
    if (asked.verb === "enter") asked.query.set("name", asked.question.name);
    const said = await send("POST", path(`${asked.verb}?${asked.query}`), { ...asked.body, key, retries: 3 });
    if (holdout === session.holdout) show(asked.question, said);
    spent();
    price.again();
  } catch (error) {
    if (holdout === session.holdout) refused(error);
  }
  field("button").textContent = "Ask";
  busy = false;
  enable();
}

function show(asked, said) {
  fill(field("result"), el("h2", { class: "unseen" }, "Answer"), resultCard(asked, said));
  field("result").scrollIntoView({ block: "nearest" });
}

function refused(error) {
  if (isAbort(error)) return;
  fill(field("result"));
  if (error.status === 401) trouble(error);
  else blame([{ message: worded(error), parameter: error.parameter }]);
}
