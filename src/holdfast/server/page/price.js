// The price before asking: what the question in a form would cost, and whether the rest pays for it.

import { Newest, isAbort } from "./api.js";
import { debounced, el, fill } from "./elements.js";
import { amount, bar, gridText, nats, plusMinus } from "./format.js";
import { session } from "./session.js";
import { table } from "./table.js";
import { trouble, settled } from "./trouble.js";
import { inCurrency, shareOf } from "./words.js";

const GUESSES = ["verify", "correct"];
const QUIET = 350; // milliseconds without a key

/**
 * The price of what is in a form. The form gives {gathered, look, blame, doubtful, became}: the question, or why there
 * is none; its price by the server; where faults and doubts are said; and what to do when it is ready, or no longer.
 */
export class Price {
  #newest = new Newest();
  #look = debounced(QUIET, () => this.#fetch());

  /** The priced question, once its price is known and can be paid; else null. */
  ready = null;

  constructor(box, form) {
    Object.assign(this, { box, form, offers: el("div", { class: "offers" }) });
    box.after(this.offers); // not in it: only the price is read out
  }

  #become(question) {
    this.ready = question;
    this.form.became();
  }

  /** The form has changed: whatever was known is no longer. */
  changed() {
    this.#newest.cancel();
    this.#become(null);
    this.form.blame([]);
    this.form.doubtful(false);
    const asked = this.form.gathered();
    if (asked.missing || asked.wrong) this.#look.cancel();
    if (asked.missing) return this.#tell("", asked.missing);
    if (asked.wrong) {
      this.form.blame([{ message: asked.message, parameter: asked.wrong }]);
      return this.#tell("", "No price yet.");
    }
    this.#tell("", "Looking up the price…");
    this.box.setAttribute("aria-busy", "true"); // so that only the price is read out
    return this.#look();
  }

  /** Look again at once: what is left has changed. */
  again() {
    if (!this.form.gathered().verb) return;
    this.#look.cancel();
    this.#fetch();
  }

  /** The same question, meant or no longer meant as it stands. */
  reconsider() {
    this.#newest.cancel();
    this.#become(null);
    this.again();
  }

  async #fetch() {
    const asked = this.form.gathered();
    if (session.holdout === null || !asked.verb) return;
    const signal = this.#newest.next();
    try {
      const price = await this.form.look(asked, signal);
      settled();
      const refused = price.doubts.filter((doubt) => doubt.refused);
      this.form.doubtful(refused.length > 0);
      const stopped = refused.length > 0 && !asked.body?.anyway;
      this.form.blame(stopped ? refused : []);
      this.#show(price, stopped, asked.names);
      const payable = (price.affordable || price.cached) && !stopped;
      this.#become(payable ? { ...asked, grid: price.grid } : null);
    } catch (error) {
      if (isAbort(error)) return;
      this.#become(null);
      this.#tell("", "No price yet.");
      if (error.status === 401) trouble(error);
      else this.form.blame([error]);
    }
  }

  #show(price, stopped, names) {
    if (price.cached) {
      return this.#tell("free", el("b", {}, "Free."), " This was asked before: the recorded answer comes again.");
    }
    if (price.told) return this.#showTold(price, stopped, names);
    const cost = (value) => inCurrency(value, price.currency);
    const most = el("b", {}, cost(price.price));
    const rest = `Only ${cost(price.budget_left)} is left.`;
    if (!price.affordable) return this.#tell("unpaid", "Price ", most, ". ", price.reason ?? rest);
    const upTo = GUESSES.includes(price.verb) ? " at most; less if the guess stands" : "";
    const share = `${shareOf(price.price, price.budget_left)} (${amount(price.budget_left)})`;
    const facts = [share, `answered by ${price.part}`];
    if (price.grid) facts.push(`on ${gridText(price.grid)}`);
    const more = el("span", { class: "more" }, `${facts.join(", ")}.`);
    return this.#tellMore(price, stopped, "Price ", most, upTo, more);
  }

  /** What a question would tell: of the likeliest answer, and at most of the other likely ones. */
  #showTold(price, stopped, names) {
    if (!price.affordable) return this.#tell("unpaid", price.reason);
    const { answers, told_so_far: before, half_width: half } = price.told;
    const now = `Told so far: ${nats(before)}; an expected share near 0.9 is now within ${plusMinus(half)}.`;
    this.#tellMore(price, stopped, "Tells ", el("b", {}, nats(price.price)), likely(answers),
      el("span", { class: "more" }, now));
    return fill(this.offers, offers(price.told, names));
  }

  /** Say a price, with what it assumes and what to beware of. */
  #tellMore(price, stopped, ...said) {
    const assumed = price.assumes.join("; ");
    const takes = assumed && el("span", { class: "more" }, `It also assumes: ${assumed}.`);
    const doubts = stopped ? price.doubts.filter((doubt) => !doubt.refused) : price.doubts;
    const beware = doubts.map((doubt) => el("span", { class: "more beware" }, doubt.message));
    return this.#tell(stopped || beware.length > 0 ? "doubtful" : "", ...said, takes, beware);
  }

  #tell(state, ...said) {
    this.box.removeAttribute("aria-busy");
    this.box.className = `price ${state}`;
    fill(this.box, ...said);
    fill(this.offers);
  }
}

const isNumber = (value) => typeof value === "number";

/** An answer that is likely, in short. */
const named = (offer) => offer.verdict ?? bar(offer);

/** When the least is told, and what else may be: a verdict is one of three, a value may be off by more. */
function likely(answers) {
  const [first, ...others] = answers;
  if (others.length === 0) return ", whatever the answer is.";
  const most = nats(Math.max(...others.map((each) => each.nats)));
  const surprises = others.filter((each) => each.expected === false).map((each) => each.nats);
  const least = `${nats(Math.min(...surprises))} or more`;
  if (isNumber(first.candidate)) return ` if all are as expected; a surprise: ${least} for each.`;
  const when = first.expected ? " if it is as expected," : " if it is";
  if (surprises.length === 0) return `${when} ${named(first)}; another likely answer: up to ${most}.`;
  return `${when} ${named(first)}; a surprise: ${first.verdict ? `up to ${most}` : least}.`;
}

function expectation({ expected }) {
  if (expected === null) return null;
  return el("span", { class: `pill ${expected ? "plain" : "warn"}` }, expected ? "as expected" : "a surprise");
}

/** What each likely answer would tell, and the bars after it; of several candidates, that of each as expected. */
function offers({ answers, half_width: half }, names) {
  const several = isNumber(answers[0].candidate);
  const shown = answers.filter((each) => !several || each.expected !== false);
  const columns = [{ label: several ? "Candidate" : "Likely answer" }, { label: "Tells", class: "num" },
    { label: "Later bars", class: "num" }];
  const rows = shown.map((each) => ({ cells: [
    [several ? `${names[each.candidate]}: ` : "", named(each) || "any of them", " ", expectation(each)],
    nats(each.nats), plusMinus(each.half_width),
  ] }));
  const caption = `Later bars: those of an expected share near 0.9, now ${plusMinus(half)}`;
  return table({ caption, columns, rows, lead: true });
}
