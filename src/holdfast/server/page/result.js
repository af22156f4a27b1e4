// What came back: value, bar, promise, price, receipt; read out by screen readers.

import { el } from "./elements.js";
import { amount, confidence, count, counted, nats } from "./format.js";
import { receiptButton } from "./table.js";
import { details, isTold, judged, paid, phrase, rangeText, readingOf, saidParts, valued } from "./words.js";

/** A card about one question and what was said to it. */
export function resultCard(question, said) {
  const grid = question.grid && typeof question.grid === "object" ? question.grid : null;
  const main = valued(said) ?? judged(said);
  const more = details({ ...question, grid });
  const rows = isTold(said) ? told(said) : facts(said, main);
  return el("div", { class: "card answer-card" },
    el("p", { class: "asked-line" }, ...phrase(question), more ? el("span", {}, ` · ${more}`) : null),
    el("p", { class: "big" }, ...saidParts(said, { ...question, grid })),
    el("dl", { class: "facts" },
      rows.flatMap(([name, text]) => [el("dt", {}, name), el("dd", {}, text)])));
}

const capital = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;

/** What an answer that is told says: its promise is a whole sentence. */
function told(said) {
  const rows = [["Promise", said.promise]];
  if (!said.certified) rows.push(["Beware", "NOT certified: the holdout is seeded."]);
  if (readingOf(said)) rows.unshift(["Reading", readingOf(said)]);
  if (said.assumes.length) rows.push(["Assumes", said.assumes.join("; ")]);
  const sum = `${nats(said.told_so_far)} in ${counted(said.answers, "answer")}`;
  rows.push(["Told", `${paid(said)}; so far ${sum}`]);
  rows.push(["Receipt", receiptButton(said.receipt)]);
  return rows;
}

function facts(said, main) {
  const sure = main.certified ? "for all answers at once" : "NOT certified";
  const rows = judged(said)?.open_blocks ? [["Range", rangeText(judged(said))]] : [];
  rows.push(["Promise", `${capital(main.promise)}; confidence ${confidence(main.confidence)}, ${sure}`]);
  if (judged(said) && valued(said)) rows.unshift(["Guess", capital(judged(said).promise)]);
  if (readingOf(said)) rows.unshift(["Reading", readingOf(said)]);
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
