// Questions and answers in words, the same wherever they are shown.

import { amount, answerValue, bar, count, counted, gridText, nats, number, percent } from "./format.js";
import { el } from "./elements.js";
import { shape } from "./marks.js";

const VERBS = { ask: "", verify: "", correct: "", mean: "mean of ", interval: "interval for " };

// How the ledger names a score: accuracy of predictions for y of y, __row (vectorised, 910235c97955)
const SCORE = /^(\w+) of predictions for .*?([0-9a-f]{8})[0-9a-f]*\)$/s;

/** The estimator's text of a question as the ledger keeps it; a score in short. */
function textOf(question) {
  const text = String(question.estimator?.text ?? question.estimator ?? question.term ?? "");
  const score = SCORE.exec(text);
  return score ? `${score[1]} of predictions ${score[2]}` : text;
}

/** The metric, if the question is a score. */
export const metricOf = (question) => SCORE.exec(String(question.estimator?.text ?? ""))?.[1] ?? null;

/** Whether it is about the difference of two scores: a comparison, or a gate against an incumbent. */
export const isDifference = ({ verb, estimator }) =>
  verb === "compare" || (verb === "gate" && estimator.names?.length > 0);

/** The filter. */
const whereOf = (question) => question.estimator?.where ?? question.where ?? null;

/** The verb in words; a score says itself what it is. */
function verbOf(question) {
  const { verb, candidates, claim, threshold } = question;
  if (verb === "enter") return `${question.name}: `;
  if (verb === "compare") return `${question.estimator.names.join(" against ")}: `;
  if (verb === "best" || verb === "scores") return `${verb} of ${count(candidates)}: `;
  if (isDifference(question)) return `gate against ${question.estimator.names[1]}: `;
  if (verb === "gate") return threshold === undefined ? "gate: " : `gate ${claim} ${number(threshold)}: `;
  return metricOf(question) ? "" : VERBS[verb] ?? "";
}

/** A question on one line. */
export function line(question) {
  const where = whereOf(question);
  return `${verbOf(question)}${textOf(question)}${where ? ` where ${where}` : ""}`;
}

/** A question as parts of a paragraph: what is code is set as code. */
export function phrase(question) {
  const where = whereOf(question);
  const parts = [verbOf(question), el("code", {}, textOf(question))];
  return where ? [...parts, " where ", el("code", {}, where)] : parts;
}

/** The guess, the range and the grid, in words. */
export function details(question) {
  const said = [];
  if (question.guess !== undefined && question.guess !== null) {
    const ofGuess = question.threshold === undefined;
    const claim = ofGuess && question.claim && question.claim !== "equals" ? `${question.claim} ` : "";
    const near = ofGuess && question.tolerance ? ` ± ${number(question.tolerance)}` : "";
    said.push(`guess: ${claim}${number(question.guess)}${near}`);
  }
  if (question.threshold !== undefined && question.tolerance) said.push(`tolerance ${number(question.tolerance)}`);
  if (question.margin !== undefined) said.push(`margin ${number(question.margin)}`);
  if (question.range) said.push(`cut to [${question.range.map((end) => number(end)).join(", ")}]`);
  if (question.grid) said.push(`grid ${gridText(question.grid)}`);
  if (question.precise) said.push("precise");
  if (question.part && question.part !== "told") said.push(`by ${question.part}`);
  return said.join(" · ");
}

/** Whether this is an answer that counts what it tells, and has no price. */
export const isTold = (said) => "told_so_far" in said;

/** The answer within whatever came back: itself, or what took the place of a refused guess. */
export const valued = (said) => ("correction" in said ? said.correction : said.verdict ? null : said);

/** The verdict within whatever came back, if there is one. */
export const judged = (said) => ("correction" in said ? said.verdict : said.verdict ? said : null);

/** The number that a verdict is about. */
export const judgedAt = (verdict) => verdict.facts?.threshold ?? verdict.facts?.margin ?? verdict.guess;

const KINDS = {
  compatible: "plain", "not compatible": "bad", "cannot tell": "warn", exhausted: "warn",
  pass: "good", fail: "bad", unclear: "warn", better: "good", worse: "bad", "not shown": "warn",
};

/** `on blocks of 100 units`; nothing where an error bar bounds a mean, which is not about blocks. */
export function onBlocks(answer) {
  if (isTold(answer)) {
    const median = ["ask", "interval"].includes(answer.verb);
    return median ? `the median over blocks of ${counted(answer.facts.block_units, "unit")}` : "";
  }
  if (answer.protocol === "mean" && answer.low !== null) return "";
  return `on blocks of ${counted(answer.block_units, "unit")}`;
}

/** Which other guesses the open part finds compatible, in words. */
export function rangeText({ range_low: low, range_high: high, open_blocks: blocks, tail }) {
  const open = counted(blocks, "open block");
  if (low === null && high === null) {
    return `${open} are too few to say which guesses are compatible: ${count(Math.ceil(1 / tail))} would do.`;
  }
  return `Guesses in ${bar({ low, high })} are compatible, going by ${open}.`;
}

/** What a score is about, in the server's words; null for what is no score. */
export const readingOf = (said) => (valued(said) ?? judged(said))?.reading_words ?? null;

/** What was said, in one line of text. */
export function saidText(said, question) {
  const verdict = judged(said);
  const answer = valued(said);
  const parts = verdict ? [`${number(judgedAt(verdict))}: ${verdict.verdict}`] : [];
  if (answer) parts.push([answerValue(answer, question.grid), bar(answer), onBlocks(answer)].filter(Boolean).join(" "));
  return parts.join("; ");
}

/** What was said, as elements: a verdict, a value, its bar, and what to beware of. */
export function saidParts(said, question) {
  const verdict = judged(said);
  const answer = valued(said);
  const { grid } = question;
  const parts = [];
  if (verdict) parts.push(el("span", { class: `pill ${KINDS[verdict.verdict]}` }, shape(verdict.verdict),
    verdict.verdict), " ");
  if (answer && isTold(answer) && answer.value === null) {
    parts.push(...ofSeveral(answer));
  } else if (answer) {
    parts.push(el("span", { class: "value", title: String(answer.value) }, answerValue(answer, grid)), " ");
    if (bar(answer)) parts.push(el("span", { class: "interval" }, bar(answer)), " ");
    const blocks = isTold(answer) ? "" : onBlocks(answer); // the promise beside it says so
    if (blocks) parts.push(el("span", { class: "interval" }, blocks), " ");
    if (answer.at_grid_end) {
      parts.push(el("span", { class: "pill warn", title: "the value may lie beyond" }, "grid end"), " ");
    }
  }
  if (said.expected === false) parts.push(el("span", { class: "pill warn" }, "a surprise"), " ");
  if ([verdict, answer].some((each) => each && each.certified === false)) {
    parts.push(el("span", { class: "pill bad" }, "not certified"));
  }
  return parts;
}

/** Of several candidates: the best one, or the bar of each. */
function ofSeveral({ winner, names, batch }) {
  const best = winner === null ? [] : [el("span", { class: "value" }, names[winner]), " "];
  const bars = batch.map((each, place) => el("span", { class: "more interval" },
    [winner === null ? names[place] : "", answerValue(each, null), bar(each)].filter(Boolean).join(" ")));
  return [...best, ...bars];
}

/** An amount of the budget, in its currency. */
export function inCurrency(value, currency) {
  return currency && currency !== "stability" ? `${amount(value)} ${currency}` : amount(value);
}

/** The last answer of what was said: of the best with its bar, that is the bar's. */
export const lastOf = (said) => (said.verb === "best" ? said.batch[0] ?? said : said);

/** What was paid, and what is left. */
export function paid(said) {
  const told = isTold(said);
  const cached = (told ? lastOf(said) : judged(said) ?? valued(said))?.cached;
  if (cached) return "free: asked before";
  if (told) return nats(lastOf(said).told + (lastOf(said) === said || said.cached ? 0 : said.told));
  return amount(said.price);
}

/** `0.68 % of what is left`. */
export const shareOf = (price, left) => (left > 0 ? `${percent(price / left)} of what is left` : "nothing is left");
