// The custodian's view: tokens, the audit log, the check of the ledger.

import { Newest, isAbort, send } from "./api.js";
import { byId, el, empty, fill } from "./elements.js";
import { nats, percent, when } from "./format.js";
import { bus, path } from "./session.js";
import { Pages, receiptButton, table } from "./table.js";
import { loadTokens, whose } from "./tokens.js";
import { trouble, worded } from "./trouble.js";
import { whenShown } from "./views.js";
import { line } from "./words.js";

const newest = new Newest();
const LIMIT = 1000; // as many as the server gives at once
let pages;

/** Wire the view. */
export function startCustodian() {
  pages = new Pages(byId("audit"), 15, "audit log", auditTable);
  byId("check").addEventListener("submit", (event) => {
    event.preventDefault();
    check();
  });
  bus.addEventListener("holdout", () => {
    newest.cancel();
    for (const id of ["tokens", "audit", "checked", "tokens-said"]) fill(byId(id));
    byId("check").reset();
    blame("");
  });
  whenShown("custodian", () => {
    loadTokens().then(loadAudit); // which names the tokens
  });
}

async function loadAudit() {
  const signal = newest.next();
  if (!byId("audit").firstChild) fill(byId("audit"), el("p", { class: "soft", role: "status" }, "Loading…"));
  try {
    const rows = [];
    for (let after = 0; after !== null;) {
      const found = await send("GET", path(`audit?after=${after}&limit=${LIMIT}`), { signal, retries: 2 });
      rows.push(...found.rows);
      after = found.next ?? null;
    }
    if (rows.length === 0) fill(byId("audit"), empty("Nothing has happened yet."));
    else pages.show(rows.reverse(), { keep: true });
  } catch (error) {
    if (!isAbort(error)) trouble(error);
  }
}

function auditTable(rows) {
  const columns = [
    { label: "Row", class: "num", counts: true }, { label: "When (UTC)" }, { label: "Who" }, { label: "What" },
  ];
  const lines = rows.map((row) => ({ cells: [
    String(row.number), el("time", { class: "nowrap", datetime: row.at }, when(row.at)), who(row), what(row),
  ] }));
  const caption = "Who did what, newest first";
  return table({ caption, columns, rows: lines, lead: true, stacks: true, quiet: true });
}

/** Who did it: notes about tokens are the custodian's, those about submissions their askers'. */
function who(row) {
  const note = row.note?.submission;
  if (row.kind === "noted" || row.kind === "created") return note ? whose(note.asker) : "custodian";
  return whose(row.asker);
}

function what(row) {
  if (row.question) {
    const done = row.kind === "reserved" ? "paid for" : row.answered ? "was answered" : "got no answer to";
    return el("div", {}, `${done} `, el("code", {}, line(row.question)));
  }
  if (row.note?.access) return accessText(row.note.access);
  if (row.note?.submission) return `submitted ${row.note.submission.name} (${row.note.submission.metric})`;
  return row.kind === "created" ? "created the holdout" : row.kind;
}

function accessText(note) {
  const token = `the token of ${whose(note.token)}`;
  if (note.revoked) return `revoked ${token}`;
  if (note.role) return `made ${token} (${note.role})`;
  const given = "nats" in note ? note.nats : note.quota;
  const quota = "nats" in note ? nats(given) : percent(given);
  return given === null ? `took the quota from ${token}` : `gave ${token} a quota of ${quota}`;
}

async function check() {
  const button = byId("check-button");
  const receipt = byId("receipt").value.trim();
  button.disabled = true;
  blame("");
  fill(byId("checked"), el("p", { class: "soft" }, "Checking every row, price and file…"));
  try {
    showChecked(await send("POST", path("check"), { json: receipt ? { receipt } : {} }));
  } catch (error) {
    fill(byId("checked"));
    if (error.status === 401) trouble(error);
    else blame(worded(error));
  }
  button.disabled = false;
}

function blame(message) {
  byId("receipt-error").textContent = message;
  if (message) byId("receipt").setAttribute("aria-invalid", "true");
  else byId("receipt").removeAttribute("aria-invalid");
}

function showChecked(found) {
  const items = found.findings.map((finding) => el("li", {},
    el("span", {}, el("span", { class: `pill ${finding.passed ? "good" : "bad"}` }, finding.passed ? "ok" : "failed")),
    el("b", {}, finding.name), el("span", {}, finding.detail)));
  const whole = found.passed ? "Everything is as it should be." : "Something is not as it should be.";
  fill(byId("checked"), el("p", {}, el("b", {}, whole)), el("ul", { class: "findings" }, items),
    el("p", { class: "help" }, "Receipt, to be kept elsewhere: ", receiptButton(found.receipt)));
}
