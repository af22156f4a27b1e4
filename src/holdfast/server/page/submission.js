// Submitting predictions: a file keyed by row id becomes an entry.

import { freshKey, isAbort, send } from "./api.js";
import { byId, el, fill, options } from "./elements.js";
import { answerValue, bar } from "./format.js";
import { bus, mayAsk, path, session, spent } from "./session.js";
import { receiptButton } from "./table.js";
import { trouble, worded } from "./trouble.js";
import { isTold, paid, readingOf, valued } from "./words.js";

const TYPES = { csv: "text/csv", parquet: "application/vnd.apache.parquet", json: "application/json" };
const FIELDS = { metric: "metric", name: "entry-name", predictions: "file", file: "file", body: "file",
  guess: "entry-guess" };
let onEntry = () => {};
let key = null; // one for each content of the form

/** Wire the form; `entered` is told the metric of a new entry. */
export function startSubmission(entered) {
  onEntry = entered;
  const form = byId("submission");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  form.addEventListener("input", () => {
    key = null;
    blame();
  });
  bus.addEventListener("holdout", () => {
    form.reset();
    key = null;
    blame();
    fill(byId("submission-result"));
  });
}

/** The metrics of this holdout; none, no form. */
export function offerMetrics(found) {
  byId("submission").hidden = found === null || !mayAsk();
  if (found === null) return;
  byId("entry-guess-field").hidden = !found.verbs.score?.includes("told");
  options(byId("metric"), found.metrics.map((name) => [name, name]));
  const keyed = `CSV, Parquet or JSON with one prediction for each row, keyed by ${found.ids ?? "row id"}. `;
  const labels = found.labels ? `Labels are ${found.labels.join(", ")}. ` : "";
  byId("submission-help").textContent = keyed + labels
    + "A file that is malformed, partial or too large is refused, and nothing is charged.";
}

function blame(message = "", parameter = null) {
  const field = FIELDS[parameter] ?? null;
  for (const id of new Set(Object.values(FIELDS))) {
    const wrong = id === field && message !== "";
    byId(`${id}-error`).textContent = wrong ? message : "";
    if (wrong) byId(id).setAttribute("aria-invalid", "true");
    else byId(id).removeAttribute("aria-invalid");
  }
  byId("submission-error").textContent = field === null ? message : "";
}

/** What stands in the way, before anything is sent: [message, field]. */
function obstacle(file, name, guess) {
  if (!file) return ["Choose a file of predictions.", "file"];
  if (!(ending(file) in TYPES)) return ["The file must end in .csv, .parquet or .json.", "file"];
  if (file.size === 0) return ["The file is empty.", "file"];
  if (!name) return ["Give the entry a name.", "name"];
  return Number.isFinite(guess) ? null : ["The score that you expect must be a number.", "guess"];
}

const ending = (file) => file.name.split(".").pop().toLowerCase();

async function submit() {
  const [file] = byId("file").files;
  const name = byId("entry-name").value.trim();
  const metric = byId("metric").value;
  const guess = byId("entry-guess-field").hidden ? "" : byId("entry-guess").value.trim();
  const wrong = obstacle(file, name, Number(guess));
  if (wrong) {
    blame(...wrong);
    byId(FIELDS[wrong[1]]).focus();
    return;
  }
  key ??= freshKey();
  const button = byId("submit-button");
  button.disabled = true;
  button.textContent = "Submitting…";
  blame();
  const holdout = session.holdout;
  try {
    const query = new URLSearchParams({ metric, name, ...(guess && { guess }) });
    const said = await send("POST", path(`enter?${query}`), { file, type: TYPES[ending(file)], key, retries: 3 });
    fill(byId("submission-result"), entered(name, said));
    spent();
    onEntry(metric);
  } catch (error) {
    refused(error, holdout);
  }
  button.disabled = false;
  button.textContent = "Submit";
}

function refused(error, holdout) {
  if (isAbort(error) || holdout !== session.holdout) return;
  fill(byId("submission-result"));
  if (error.status === 401) trouble(error);
  else blame(worded(error), error.parameter);
}

/** The new entry in words: its score. */
function entered(name, said) {
  const price = said.cached ? "free: submitted before" : `${isTold(said) ? "told" : "price"} ${paid(said)}`;
  const score = valued(said) ? `${answerValue(said, null)} ${bar(said)}` : "";
  return el("p", { class: "note good" }, el("b", {}, `${name}: ${score}`),
    ` The score is that of ${readingOf(said)}.`,
    ` ${price[0].toUpperCase()}${price.slice(1)}, receipt `, receiptButton(said.receipt));
}
