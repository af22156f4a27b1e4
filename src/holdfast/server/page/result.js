// What came back: value, bar, promise, price, receipt; read out by screen readers.

import { barPicture } from "./bars.js";
import { el, fill, onWidth } from "./elements.js";
import { amount, confidence, count, counted, nats, number } from "./format.js";
import { receiptButton } from "./table.js";
import { details, isTold, judged, lastOf, paid, phrase, rangeText, readingOf, saidParts, valued } from "./words.js";

/** A card about one question and what was said to it. */
export function resultCard(question, said) {
  const grid = question.grid && typeof question.grid === "object" ? question.grid : null;
  const main = valued(said) ?? judged(said);
  const more = details({ ...question, grid });
  const rows = isTold(said) ? told(said) : facts(said, main);
  return el("div", { class: "card answer-card" },
    el("p", { class: "asked-line" }, ...phrase(question), more ? el("span", {}, ` · ${more}`) : null),
    said.verb === "scores" ? null : el("p", { class: "big" }, ...saidParts(said, { ...question, grid })),
    isTold(said) ? [el("p", { class: "sentence" }, `${said.promise}.`), picture(said)] : null,
    el("dl", { class: "facts" },
      rows.flatMap(([name, text]) => [el("dt", {}, name), el("dd", {}, text)])));
}

const capital = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;

/** The bar, drawn as wide as there is room. */
function picture(said) {
  const box = el("div", { class: "canvas picture" });
  onWidth(box, () => fill(box, barPicture(said, box.clientWidth)));
  return box;
}

/** What else there is to an answer that is told: its promise, a whole sentence, stands above. */
function told(said) {
  const rows = readingOf(said) ? [["Reading", readingOf(said)]] : [];
  if (said.guess !== null && said.expected !== null) rows.push(["Guess", guessed(said)]);
  const off = said.verb === "scores" ? said.names.filter((_, i) => said.batch[i].expected === false) : [];
  if (off.length > 0) rows.push(["Surprises", `${off.join(", ")}: what was guessed is the diamond in the picture`]);
  if (!said.certified) rows.push(["Beware", "NOT certified: the holdout is seeded."]);
  if (said.leaning !== null) {
    const far = `${said.leaning > 0 ? "higher" : "lower"} than what was told, by ${number(Math.abs(said.leaning), 2)}`;
    const what = "your guesses and the scores on the open part";
    rows.push(["Beware", `In the surprises so far, ${what} were ${far} on average.`]);
  }
  if (said.assumes.length) rows.push(["Assumes", said.assumes.join("; ")]);
  const { told_so_far: sum, answers, cached, receipt } = lastOf(said);
  rows.push(["Told", `${paid(said)}${cached ? "" : `; so far ${nats(sum)} in ${counted(answers, "answer")}`}`]);
  rows.push(["Receipt", receiptButton(receipt)]);
  return rows;
}

/** What was expected, by whom, and whether it came so. */
function guessed({ guess, expected, verdict, facts: { guessed: yours, corrected, against, greater } }) {
  const gain = greater === false ? -guess : guess;
  const better = gain === 0 ? "no difference" : `${gain > 0 ? "better" : "worse"} by ${number(Math.abs(gain), 4)}`;
  const source = `from the open part${corrected ? " and earlier answers" : ""}`;
  const value = `${against ? better : number(guess, 4)}, ${yours ? "your own" : source}`;
  if (verdict) return `${value}: the verdict is ${expected ? "as expected" : "a surprise"}`;
  return `${value}: ${expected ? "confirmed" : "a surprise, the diamond in the picture"}`;
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
