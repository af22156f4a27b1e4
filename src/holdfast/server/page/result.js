// What came back: value, bar, promise, price, receipt; read out by screen readers.

import { el } from "./elements.js";
import { amount, count, number } from "./format.js";
import { receiptButton } from "./table.js";
import { details, judged, paid, phrase, saidParts, valued } from "./words.js";

/** A card about one question and what was said to it. */
export function resultCard(question, said) {
  const grid = question.grid && typeof question.grid === "object" ? question.grid : null;
  const main = valued(said) ?? judged(said);
  const more = details({ ...question, grid });
  return el("div", { class: "card answer-card" },
    el("p", { class: "asked-line" }, ...phrase(question), more ? el("span", {}, ` · ${more}`) : null),
    el("p", { class: "big" }, ...saidParts(said, grid)),
    el("dl", { class: "facts" },
      facts(said, main).flatMap(([name, text]) => [el("dt", {}, name), el("dd", {}, text)])));
}

function facts(said, main) {
  const sure = main.certified ? "for all answers at once" : "NOT certified";
  const rows = [["Promise", `${main.promise}; confidence ${number(main.confidence)}, ${sure}`]];
  if (main.at_grid_end) rows.push(["Beware", "The answer is at the end of its grid: the value may lie beyond."]);
  if (judged(said)?.verdict === "exhausted") {
    rows.push(["Exhausted", "Nothing was drawn: this says nothing about the guess."]);
  }
  const refusals = judged(said)?.refusals_left;
  if (refusals !== null && refusals !== undefined) rows.push(["Refusals", `${count(refusals)} left`]);
  rows.push(["Price", `${paid(said)}; ${amount(main.budget_left)} left`]);
  if (main.receipt) rows.push(["Receipt", receiptButton(main.receipt)]);
  return rows;
}
