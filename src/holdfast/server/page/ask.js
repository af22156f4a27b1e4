// The view for asking: a form, its price, and the answer.

import { isAbort, send } from "./api.js";
import { catalog } from "./catalog.js";
import { byId, el, fill } from "./elements.js";
import { number } from "./format.js";
import { askAsJob, startJobs } from "./jobs.js";
import { Price } from "./price.js";
import {
  arrange, blame, blameAll, forgetGrids, forgetKey, gathered, keyOf, offer, offerAnyway, typedGrid,
} from "./question.js";
import { resultCard } from "./result.js";
import { bus, mayAsk, path, session, spent } from "./session.js";
import { trouble, worded } from "./trouble.js";
import { whenShown } from "./views.js";

let busy = false;
let price;
let lastField = "estimator"; // where a column's name goes

/** Wire the form. */
export function startAsk() {
  const form = byId("ask");
  price = new Price(byId("price"), { gathered, look, blame: blameAll, doubtful: offerAnyway, became: enable });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  form.addEventListener("input", (event) => {
    if (event.target.id === "anyway") price.reconsider();
    else if (event.target.id !== "as-job") changed();
  });
  form.addEventListener("change", (event) => {
    if (event.target.name !== "verb" && event.target.id !== "part") return;
    arrange();
    changed();
  });
  for (const id of ["estimator", "where-text"]) byId(id).addEventListener("focus", () => { lastField = id; });
  byId("estimator").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  bus.addEventListener("holdout", reset);
  startJobs(shown);
  whenShown("ask", load);
}

const look = ({ verb, body }, signal) =>
  send("POST", path("price"), { json: { verb, ...body }, signal, retries: 2 });

function changed() {
  fill(byId("result")); // it was the answer to another question
  price.changed();
}

function reset() {
  for (const id of ["result", "columns", "verbs"]) fill(byId(id)); // they were another holdout's
  byId("ask").reset();
  forgetGrids();
  if (session.holdout !== null) changed();
}

async function load() {
  byId("viewer-note").hidden = mayAsk();
  byId("ask").hidden = !mayAsk();
  try {
    const found = await catalog();
    if (byId("columns").childElementCount === 0) {
      offer(found.verbs);
      fill(byId("columns"), found.columns.map(columnItem));
      changed();
    } else if (price.ready === null) {
      price.again();
    }
  } catch (error) {
    if (!isAbort(error)) trouble(error);
  }
}

function columnItem(column) {
  const range = column.range ? ` ${number(column.range[0])} to ${number(column.range[1])}` : "";
  const texts = column.categories ? `: ${column.categories.join(", ")}` : "";
  const kind = el("span", { class: "kind", title: texts ? column.categories.join(", ") : null },
    `${column.kind}${range}${texts}`);
  const button = el("button", { type: "button", on: { click: () => insert(column.name) } },
    el("code", {}, column.name), kind);
  return el("li", {}, button);
}

/** Put a name where the cursor was; what is not a plain name is quoted. */
function insert(name) {
  const field = byId(lastField);
  const written = /^[a-z_][a-z0-9_]*$/i.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
  field.setRangeText(written, field.selectionStart, field.selectionEnd, "end");
  field.focus();
  changed();
}

function enable() {
  byId("ask-button").disabled = busy || price.ready === null || !mayAsk();
}

async function submit() {
  const asked = price.ready;
  if (busy || asked === null) return;
  busy = true;
  enable();
  byId("ask-button").textContent = "Asking…";
  const question = { verb: asked.verb, ...asked.body, grid: typedGrid(asked.body.grid) ?? asked.grid };
  try {
    if (byId("as-job").checked) {
      await askAsJob(asked, question, keyOf(asked), (told, said, failed) => {
        if (failed) forgetKey(asked);
        shown(told, said);
      });
    } else {
      const said = await send("POST", path(asked.verb), { json: asked.body, key: keyOf(asked), retries: 3 });
      shown(question, said);
      spent();
    }
    price.again();
  } catch (error) {
    refused(error);
  }
  byId("ask-button").textContent = "Ask";
  busy = false;
  enable();
}

function shown(question, said) {
  if (!said) return;
  fill(byId("result"), el("h2", { class: "unseen" }, "Answer"), resultCard(question, said));
  byId("result").scrollIntoView({ block: "nearest" });
}

function refused(error) {
  if (isAbort(error)) return;
  fill(byId("result")); // an earlier answer is not what came now
  if (error.kind === "doubtful") offerAnyway(true);
  if (error.status === 401) trouble(error);
  else blame(["bad_question", "doubtful"].includes(error.kind) ? error.message : worded(error), error.parameter);
}
