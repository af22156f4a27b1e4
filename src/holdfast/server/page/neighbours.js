// Neighbours of the leaderboard: each of its first entries compared with the next, with the price before asking.

import { Newest, isAbort, send } from "./api.js";
import { byId, el, fill } from "./elements.js";
import { counted, nats } from "./format.js";
import { shape } from "./marks.js";
import { path, session, spent } from "./session.js";
import { trouble, worded } from "./trouble.js";

const newest = new Newest();
const fault = el("p", { class: "error", role: "alert" });
let shown = null; // the entries whose comparisons are shown
let busy = false;

/** No comparisons are offered. */
export function forgetNeighbours() {
  newest.cancel();
  shown = null;
  fill(byId("neighbours"));
}

/** Offer to compare the entries of a board, with the price; what was answered stays as long as they do. */
export async function offerNeighbours({ metric, entries }) {
  const now = JSON.stringify([session.holdout.name, metric, entries.map(({ receipt }) => receipt)]);
  if (busy || now === shown) return;
  forgetNeighbours();
  if (entries.length < 2) return;
  const signal = newest.next();
  try {
    const { neighbours } = await ask("price/neighbours", metric, { signal });
    show(neighbours, metric);
    shown = now;
  } catch (error) {
    if (!isAbort(error)) refused(error); // metrics that are no means over rows have no pairs
  }
}

const ask = (what, metric, how) =>
  send("POST", path(`${what}?${new URLSearchParams({ metric })}`), { ...how, retries: 2 });

/** The pairs, each in the server's words; and a button, if any of them can be asked. */
function show(pairs, metric) {
  const open = pairs.filter(({ price }) => price !== null && (price.affordable || price.cached));
  const sum = open.reduce((all, { price }) => all + (price.cached ? 0 : price.price), 0);
  const cost = sum > 0
    ? `tells about ${nats(sum)} in ${counted(open.length, "comparison")}, more where one is a surprise`
    : "free: asked before";
  const button = el("button", { type: "button", class: "primary", on: { click: () => compare(button, metric) } },
    "Compare neighbours");
  fill(byId("neighbours"), el("section", { class: "card", "aria-labelledby": "neighbours-title" },
    el("h2", { id: "neighbours-title" }, "Neighbours"),
    el("p", { class: "help" }, "Each of the first entries against the next, on the same rows: that tells models apart "
      + "whose bars overlap."),
    el("ul", { class: "pairs", role: "list" }, pairs.map(pair)),
    fill(fault),
    open.length > 0 && el("div", { class: "actions" }, button,
      el("span", { class: "soft" }, cost))));
}

function pair({ said, apart, result }) {
  return el("li", {}, result && shape(apart ? "better" : "not shown"), result && " ", said);
}

async function compare(button, metric) {
  if (busy) return;
  busy = true;
  button.disabled = true;
  const { holdout } = session;
  try {
    const { neighbours } = await ask("neighbours", metric);
    if (holdout === session.holdout) show(neighbours, metric);
  } catch (error) {
    if (holdout === session.holdout) refused(error);
  }
  busy = false;
  button.disabled = false;
  spent();
}

function refused(error) {
  if (error.status === 401) trouble(error);
  else fault.textContent = worded(error);
}
