// The price before asking: what the question in the form would cost, and whether the rest pays for it.

import { Newest, isAbort, send } from "./api.js";
import { byId, debounced, el, fill } from "./elements.js";
import { amount, bar, gridText, nats, plusMinus } from "./format.js";
import { blame, blameAll, gathered, offerAnyway, typedGrid } from "./question.js";
import { path, session } from "./session.js";
import { trouble, settled } from "./trouble.js";
import { inCurrency, shareOf } from "./words.js";

const GUESSES = ["verify", "correct"];
const QUIET = 350; // milliseconds without a key
const newest = new Newest();
let listener = () => {};

/** The priced question, once its price is known and can be paid: {verb, body, grid}. */
let ready = null;

/** Call this whenever a question has become ready, or is no longer. */
export function onReady(run) {
  listener = run;
}

/** What may be asked now, or null. */
export const readyQuestion = () => ready;

function become(question) {
  ready = question;
  listener(question);
}

const look = debounced(QUIET, fetchPrice);

/** The form has changed: whatever was known is no longer. */
export function changed() {
  newest.cancel();
  become(null);
  blame();
  offerAnyway(false);
  fill(byId("result")); // it was the answer to another question
  const asked = gathered();
  if (asked.missing) {
    look.cancel();
    const words = { estimator: "Write a question to see its price.", guess: "Write a guess to see the price." };
    return tell("", words[asked.missing]);
  }
  if (asked.wrong) {
    look.cancel();
    blame(asked.message, asked.wrong);
    return tell("", "No price yet.");
  }
  tell("", "Looking up the price…");
  byId("price").setAttribute("aria-busy", "true"); // so that only the price is read out
  return look();
}

/** Look again at once: what is left has changed. */
export function again() {
  if (!gathered().body) return;
  look.cancel();
  fetchPrice();
}

/** The same question, meant or no longer meant as it stands. */
export function reconsider() {
  newest.cancel();
  become(null);
  again();
}

async function fetchPrice() {
  const asked = gathered();
  if (session.holdout === null || !asked.body) return;
  const signal = newest.next();
  try {
    const price = await send("POST", path("price"), { json: { verb: asked.verb, ...asked.body }, signal, retries: 2 });
    settled();
    const refused = price.doubts.filter((doubt) => doubt.refused);
    offerAnyway(refused.length > 0);
    const stopped = refused.length > 0 && !asked.body.anyway;
    blameAll(stopped ? refused : []);
    show(price, stopped);
    const payable = (price.affordable || price.cached) && !stopped;
    become(payable ? { ...asked, grid: typedGrid(asked.body.grid) ?? price.grid } : null);
  } catch (error) {
    if (isAbort(error)) return;
    become(null);
    tell("", "No price yet.");
    if (error.status === 401) trouble(error);
    else blame(error.message, error.parameter);
  }
}

function show(price, stopped) {
  if (price.cached) {
    return tell("free", el("b", {}, "Free."), " This was asked before: the recorded answer comes again.");
  }
  if (price.told) return showTold(price, stopped);
  const cost = (value) => inCurrency(value, price.currency);
  const most = el("b", {}, cost(price.price));
  const rest = `Only ${cost(price.budget_left)} is left.`;
  if (!price.affordable) return tell("unpaid", "Price ", most, ". ", price.reason ?? rest);
  const upTo = GUESSES.includes(price.verb) ? " at most; less if the guess stands" : "";
  const share = `${shareOf(price.price, price.budget_left)} (${amount(price.budget_left)})`;
  const facts = [share, `answered by ${price.part}`];
  if (price.grid) facts.push(`on ${gridText(price.grid)}`);
  const more = el("span", { class: "more" }, `${facts.join(", ")}.`);
  return tellMore(price, stopped, "Price ", most, upTo, more);
}

/** What a question would tell: of the likeliest answer, and at most of the other likely ones. */
function showTold(price, stopped) {
  if (!price.affordable) return tell("unpaid", price.reason);
  const { answers, told_so_far: before, half_width: half } = price.told;
  const [first, ...others] = answers;
  const named = [first.verdict, bar(first)].filter(Boolean).join(" ");
  const when = first.expected ? " if it is as expected" : " if it is";
  const name = others.some((each) => each.expected === false) ? "a surprise" : "another likely answer";
  const most = Math.max(0, ...others.map((each) => each.nats));
  const rest = others.length > 0 ? `; ${name}: up to ${nats(most)}` : "";
  const now = `Told so far: ${nats(before)}; an expected share near 0.9 is now within ${plusMinus(half)}.`;
  return tellMore(price, stopped, "Tells ", el("b", {}, nats(first.nats)),
    `${when}${first.expected && named ? "," : ""} ${named}${rest}.`, el("span", { class: "more" }, now));
}

/** Say a price, with what it assumes and what to beware of. */
function tellMore(price, stopped, ...said) {
  const assumed = price.assumes.join("; ");
  const takes = assumed && el("span", { class: "more" }, `It also assumes: ${assumed}.`);
  const doubts = stopped ? price.doubts.filter((doubt) => !doubt.refused) : price.doubts;
  const beware = doubts.map((doubt) => el("span", { class: "more beware" }, doubt.message));
  return tell(stopped || beware.length > 0 ? "doubtful" : "", ...said, takes, beware);
}

function tell(state, ...said) {
  const box = byId("price");
  box.removeAttribute("aria-busy");
  box.className = `price ${state}`;
  fill(box, ...said);
}
