// The custodian's tokens: who may do what, until when, with which share of the budget or how many nats.

import { isAbort, send } from "./api.js";
import { catalog } from "./catalog.js";
import { confirmed } from "./confirm.js";
import { byId, el, empty, fill } from "./elements.js";
import { day, nats, number, percent } from "./format.js";
import { path } from "./session.js";
import { table } from "./table.js";
import { trouble, worded } from "./trouble.js";

// A quota as it is typed and said: a share of the budget, or what may be told.
const SHARE = {
  word: "quota", unit: "%", size: 100, most: 1, of: "percent of every budget",
  wrong: "more than 0 and at most 100 percent",
  text: percent, may: (share) => `may spend ${percent(share)} of every budget`,
  used: (token) => percent(Math.max(0, ...Object.values(token.used ?? {}))), // of several sets, the largest
};
const NATS = {
  word: "nats", unit: "nats", size: 1, most: Infinity, of: "nats",
  wrong: "more than 0 nats",
  text: nats, may: (told) => `may be told ${nats(told)}`,
  used: (token) => nats(token.told),
};

let names = new Map();
let quota = SHARE;

function remember(tokens) {
  names = new Map(tokens.map((token) => [token.id, token.name]));
}

/** Whose token this is, as far as is known here; what was asked without one says so. */
export function whose(id) {
  if (!id) return "command line";
  return id === "anyone" ? "without a token" : (names.get(id) ?? id);
}

/** Learn the names, for views that show askers. */
export async function learnNames(signal) {
  remember(await send("GET", path("tokens"), { signal, retries: 2 }));
}

/** Load and show them. */
export async function loadTokens() {
  const box = byId("tokens");
  if (!box.firstChild) fill(box, el("p", { class: "soft", role: "status" }, "Loading…"));
  try {
    const found = await send("GET", path("tokens"), { retries: 2 });
    const { verbs } = await catalog();
    quota = Object.values(verbs).flat().every((part) => part === "told") ? NATS : SHARE;
    remember(found);
    fill(box, found.length ? tokenTable(found) : empty("There is no token yet."));
  } catch (error) {
    if (!isAbort(error)) trouble(error);
  }
}

function tokenTable(tokens) {
  const columns = [
    { label: "Name" }, { label: "Role" }, { label: "Quota" }, { label: "Used", class: "num" },
    { label: "Created" }, { label: "Expires" }, { label: "State" }, { label: "Actions", unseen: true },
  ];
  const order = [...tokens].sort((a, b) => Number(stateOf(a) !== "good") - Number(stateOf(b) !== "good"));
  const rows = order.map(tokenRow);
  return table({ caption: "Tokens of this holdout", columns, rows, lead: true, quiet: true, stacks: true });
}

/** Whether a token is good, has expired or was revoked. */
function stateOf(token) {
  if (token.revoked) return "revoked";
  return token.expires && new Date(token.expires) <= new Date() ? "expired" : "good";
}

function tokenRow(token) {
  const state = stateOf(token);
  const name = token.name ?? "(no name)";
  const good = state === "good";
  return { cells: [
    el("div", {}, name, el("span", { class: "more" }, el("code", {}, token.id))),
    token.role,
    good && token.role === "analyst" ? quotaField(token, name) : quotaText(token),
    quota.used(token),
    dated(token.created),
    token.expires ? dated(token.expires) : "never",
    el("span", { class: `pill ${{ good: "good", expired: "plain", revoked: "bad" }[state]}` }, state),
    good ? small("Revoke", `Revoke ${name}`, () => revoke(token, name)) : "",
  ] };
}

const dated = (at) => el("time", { class: "nowrap", datetime: at, title: at }, day(at));

const small = (text, label, click) =>
  el("button", { type: "button", class: "small", "aria-label": label, on: { click } }, text);

const quotaText = (token) => (token[quota.word] === null ? "none" : quota.text(token[quota.word]));

function quotaField(token, name) {
  const given = token[quota.word];
  const shown = given === null ? "" : number(quota.size * given);
  const input = el("input", {
    value: shown, inputmode: "decimal", autocomplete: "off", placeholder: "none",
    "aria-label": `Quota of ${name} in ${quota.of}; empty for none`,
  });
  const save = small("Save", `Save the quota of ${name}`, () => setQuota(token, name, input));
  save.disabled = true;
  input.addEventListener("input", () => {
    input.removeAttribute("aria-invalid");
    save.disabled = input.value.trim() === shown;
  });
  input.addEventListener("keydown", (event) => { if (event.key === "Enter" && !save.disabled) save.click(); });
  return el("span", { class: "quota" }, input, quota.unit, save);
}

async function setQuota(token, name, input) {
  const text = input.value.trim();
  const given = text === "" ? null : Number(text) / quota.size;
  if (given !== null && !(given > 0 && given <= quota.most && Number.isFinite(given))) {
    input.setAttribute("aria-invalid", "true");
    say(`The quota of ${name} must be ${quota.wrong}, or empty for none.`, true);
    return;
  }
  const done = given === null ? "has no quota now" : quota.may(given);
  await act("PATCH", token, { [quota.word]: given }, `${name} ${done}.`);
}

async function revoke(token, name) {
  const text = `Whoever holds the token of ${name} (${token.role}) is shut out at once. `
    + "A revoked token never comes back; what it asked stays in the ledger.";
  const sure = await confirmed("Revoke this token?", text, "Revoke");
  if (sure) await act("DELETE", token, undefined, `The token of ${name} is revoked.`);
}

async function act(method, token, json, done) {
  try {
    await send(method, path(`tokens/${encodeURIComponent(token.id)}`), { json, retries: 2 });
    say(done);
  } catch (error) {
    if (error.status === 401) trouble(error);
    else say(worded(error), true);
  }
  await loadTokens();
}

function say(text, bad = false) {
  const box = byId("tokens-said");
  box.textContent = text;
  box.className = bad ? "said error" : "said help";
}
