// The budget: what is spent of each set, what the rest still buys, and the promise; of a set whose answers count what
// they tell, what was told so far and which bars to expect.

import { Newest, isAbort, send } from "./api.js";
import { byId, el, fill } from "./elements.js";
import { amount, confidence, count, counted, nats, percent, plusMinus, shortReceipt } from "./format.js";
import { bus, path, session } from "./session.js";
import { receiptButton, table } from "./table.js";
import { reached, trouble } from "./trouble.js";

const EVERY = 30_000; // others spend the same budget
const GRIDS = [2, 8, 32, 128, 1024];
const newest = new Newest();

/** Show the budget, and look again whenever it may have changed. */
export function startGauge() {
  bus.addEventListener("holdout", load);
  bus.addEventListener("spent", load);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) load(); });
  setInterval(() => { if (!document.hidden) load(); }, EVERY);
  byId("buys").open = matchMedia("(min-width: 1061px)").matches;
}

async function load() {
  if (session.holdout === null) return newest.cancel();
  const signal = newest.next();
  const gauges = byId("gauges");
  if (gauges.dataset.holdout !== session.holdout.name) fill(gauges, el("p", { class: "soft" }, "Loading…"));
  try {
    const status = await send("GET", path("status"), { signal, retries: 2 });
    reached();
    show(status);
    gauges.dataset.holdout = session.holdout.name;
    const bought = status.sets.every((set) => set.told) ? [] : [...boughtBy(status), await prices(signal)];
    fill(byId("buys-body"), ...status.sets.filter((set) => set.told).flatMap(expectedBars), ...bought);
  } catch (error) {
    if (!isAbort(error)) trouble(error);
  }
  return undefined;
}

function show(status) {
  const all = status.sets.every((set) => set.told);
  byId("budget-title").textContent = all ? "Answers so far" : "Budget";
  byId("buys-line").textContent = all ? "Bars to expect" : "What the rest still buys";
  const gauges = status.sets.map((set) => (set.told ? toldSoFar(set.told) : gauge({
    label: status.sets.length > 1 || set.name !== "main" ? `Set ${set.name}` : "Spent",
    share: Math.min(1, set.spent / set.budget),
    note: `${left(set)} left of ${amount(set.budget)}${unsettled(set)}`,
  })));
  if (status.quota) gauges.push(...quotaGauges(status));
  const seeded = status.certified ? null : el("p", { class: "note" }, "Seeded: nothing is certified.");
  const reason = status.new_budget;
  const known = `earlier holdouts of these data known here: ${status.earlier || "none"}`;
  const again = reason && el("p", { class: "note" }, `A new budget, because: ${reason} (${known})`);
  fill(byId("gauges"), seeded, again, ...gauges);
  const sure = confidence(status.confidence);
  byId("promise-line").textContent = `The promise: all answers at once, with confidence ${sure}`;
  fill(byId("promise-body"), `It assumes: ${status.assumes}. `,
    `${count(status.units)} units in ${count(status.blocks)} blocks of ${count(status.block_units)}; `,
    `${counted(status.answers, "question")} answered. Receipt of the ledger: `, receiptButton(status.receipt));
  byId("promise-body").lastChild.title = `${shortReceipt(status.receipt)}: ${status.receipt}`;
}

/** What answers have told of a set: nothing is used up, but later bars are wider. */
function toldSoFar({ answers, surprises, rows, nats: told }) {
  return el("div", { class: "gauge" },
    el("p", { class: "gauge-head" }, el("b", {}, `told ${nats(told)} in ${counted(answers, "answer")}`)),
    el("p", { class: "gauge-note" }, "(what the answers gave away; later bars widen with it)"),
    el("p", { class: "gauge-note" },
      `${counted(surprises, "surprise")} among them; ${counted(rows, "sealed unit")}`));
}

/** The bars of later answers, by how many questions are asked until then and how many of them surprise. */
export function expectedBars({ told: { bars, fresh_labels: labels = null, further = 0 } }) {
  const kinds = ["claims about fresh rows", "scores of these rows, fresh labels"];
  const wider = further > 0 ? "further, so their bars are wider" : "less far";
  const other = labels === null || Math.abs(further) < 0.01 ? ""
    : ` By contrast, ${kinds[labels ? 0 : 1]} are judged ${Math.abs(further).toFixed(1)} nats ${wider}.`;
  const columns = [{ label: "Questions" },
    ...bars[0].surprises.map((many) => ({ label: counted(many, "surprise"), class: "num bars" }))];
  const rows = bars.map((each) => ({ cells: [count(each.questions), ...each.half_widths.map((half, i) => (
    each.surprises[i] <= each.questions ? plusMinus(half) : "–"))] }));
  const precise = [bars[0], bars.at(-1)].map((each) => plusMinus(each.precise[0]));
  const caption = "After so many more questions, with so many surprises among them; "
    + `about a share near 0.9 that you guess about right${labels === null ? "" : ` (${kinds[labels ? 1 : 0]})`}`;
  return [table({ caption, columns, rows, lead: true }),
    el("p", { class: "soft" },
      `Precise answers, which tell more: ${precise[0]} now, ${precise[1]} at the end.${other}`)];
}

/** What is used of what is one's own: nats, or a share of budget, questions or refusals, whichever is most. */
function quotaGauges({ sets, quota: { share, used, nats: most, told } }) {
  const own = most === null || !sets.some((set) => set.told) ? [] : [gauge({
    label: "Your quota", share: Math.min(1, told / most),
    note: `told ${nats(told)}; you may ask until it is ${nats(most)}`,
  })];
  const paying = sets.filter((set) => !set.told && share !== null).map((set) => [set.name, used[set.name]]);
  return own.concat(paying.map(([name, spentShare]) => gauge({
    label: paying.length > 1 ? `Your quota of ${name}` : "Your quota",
    share: Math.min(1, spentShare / share),
    note: `${percent(spentShare)} of the ${percent(share)} that are yours, of what you used most of`,
  })));
}

const unsettled = (set) =>
  (set.unsettled ? `; ${counted(set.unsettled, "question")} reserved and not recorded: charged in full` : "");

function left(set) {
  const rest = amount(Math.max(0, set.budget - set.spent));
  return set.currency === "stability" ? rest : `${rest} ${set.currency}`;
}

/** One gauge, read out as a meter. */
function gauge({ label, share, note }) {
  const state = share >= 0.999 ? "out" : share > 0.8 ? "low" : "";
  const bar = el("span", { class: `gauge-fill ${state}` });
  bar.style.width = `${100 * share}%`;
  return el("div", { class: "gauge" },
    el("div", { class: "gauge-head" }, el("span", {}, label), el("b", {}, percent(share))),
    el("div", {
      class: "gauge-track", role: "meter", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": 100,
      "aria-valuenow": Math.round(1000 * share) / 10, "aria-valuetext": `${percent(share)} spent; ${note}`,
    }, bar),
    el("p", { class: "gauge-note" }, note));
}

/** The parts, and what each could still answer, were all the rest spent on it. */
function boughtBy(status) {
  const parts = status.sets.flatMap((set) => set.parts);
  const refusals = parts.some((part) => part.refusals_left !== null);
  const columns = [{ label: "Part" }, { label: "Questions", class: "num" }];
  if (refusals) columns.push({ label: "Refusals", class: "num" });
  const rows = parts.map((part) => ({ cells: [
    part.name, count(part.questions_left),
    ...(refusals ? [part.refusals_left === null ? "–" : count(part.refusals_left)] : []),
  ] }));
  const last = parts.filter((part) => part.questions_left === 0 && part.still_possible);
  const notes = last.map((part) => el("p", { class: "soft" }, `Still possible: ${part.still_possible}.`));
  return [table({ caption: "More of each, were all the rest spent on it", columns, rows, lead: true }), ...notes];
}

/** What a question costs by the size of its grid; null where the plan has no such prices. */
async function prices(signal) {
  try {
    const { parts } = await send("GET", path("left"), { signal });
    const part = parts.find((each) => each.grids?.length);
    if (!part) return null;
    const columns = [{ label: "Grid" }, { label: "Price", class: "num" }, { label: "Questions", class: "num" }];
    const rows = part.grids.filter((each) => GRIDS.includes(each.grid)).map((each) => ({ cells: [
      counted(each.grid, "point"), amount(each.price), count(each.questions_left),
    ] }));
    return table({ caption: `Price of ${part.name} by the size of the grid`, columns, rows, lead: true });
  } catch (error) {
    if (isAbort(error)) throw error;
    return null; // a table less is no trouble
  }
}
