// Who is asking, and which holdout.

import { send, useToken } from "./api.js";
import { byId, options } from "./elements.js";

const KEPT = "holdfast.token";

/** What the other parts listen to: "holdout" (another one, or none) and "spent" (something was asked). */
export const bus = new EventTarget();

/** The holdouts that may be seen, and the chosen one. */
export const session = { token: null, holdouts: [], holdout: null };

/** Whether the chosen holdout may be asked by this token. */
export const mayAsk = () => session.holdout !== null && session.holdout.role !== "viewer";

/** Whether the custodian is here. */
export const isCustodian = () => session.holdout?.role === "custodian";

/** Whether predictions can be sent to the chosen holdout: it has labels and row ids. */
export const hasModels = () => session.holdout?.models === true;

/** The path of something of the chosen holdout. */
export const path = (rest) => `api/holdouts/${encodeURIComponent(session.holdout.name)}/${rest}`;

/** Something was asked: whoever shows the budget or the answers looks again. */
export const spent = () => bus.dispatchEvent(new Event("spent"));

/** Come in with a token, or without one where the server is open; throws Refused. */
export async function enter(secret) {
  useToken(secret);
  let holdouts;
  try {
    holdouts = await send("GET", "api/holdouts");
  } catch (error) {
    useToken(session.token);
    throw error;
  }
  session.token = secret;
  session.holdouts = holdouts;
  if (secret) sessionStorage.setItem(KEPT, secret);
  else sessionStorage.removeItem(KEPT);
  choose(holdouts[0]?.name ?? null);
}

/** The token of this tab, if it has one. */
export const keptToken = () => sessionStorage.getItem(KEPT);

/** Forget the token and everything that was seen with it. */
export function leave() {
  sessionStorage.removeItem(KEPT);
  useToken(null);
  Object.assign(session, { token: null, holdouts: [], holdout: null });
  bus.dispatchEvent(new Event("holdout"));
}

/** Look at this holdout. */
function choose(name) {
  session.holdout = session.holdouts.find((each) => each.name === name) ?? null;
  bus.dispatchEvent(new Event("holdout"));
}

/** The bar on top: which holdout, and as whom. */
export function startBar() {
  const select = byId("holdout");
  select.addEventListener("change", () => choose(select.value));
  bus.addEventListener("holdout", () => {
    const { holdouts, holdout, token } = session;
    byId("where").hidden = holdout === null;
    byId("sign-out").hidden = token === null;
    byId("sign-in-again").hidden = token !== null || holdout === null;
    if (holdout === null) return;
    options(select, holdouts.map((each) => [each.name, each.title ?? each.name]), holdout.name);
    select.disabled = holdouts.length < 2;
    const name = holdout.token?.name;
    byId("role").textContent = name ? `${name}, ${holdout.role}` : holdout.role;
  });
}
