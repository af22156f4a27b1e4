// Views: one is shown at a time, named by the address, so that "back" goes back.

import { byId } from "./elements.js";
import { bus, hasModels, isCustodian, session } from "./session.js";
import { settled } from "./trouble.js";

const NAMES = ["ask", "models", "answers", "leaderboard", "planner", "custodian"];
const OF_MODELS = ["models", "leaderboard"];
const shown = new Map();

/** Call this whenever the view comes into sight, or its holdout changes while it is. */
export function whenShown(name, run) {
  shown.set(name, run);
}

/** The view in sight. */
export function currentView() {
  if (session.holdout === null) return "sign-in";
  const named = location.hash.slice(1);
  const hidden = (named === "custodian" && !isCustodian()) || (OF_MODELS.includes(named) && !hasModels());
  if (NAMES.includes(named) && !hidden) return named;
  return hasModels() ? "models" : "ask";
}

/** Show the view that the address names. */
export function startViews() {
  window.addEventListener("hashchange", () => {
    settled();
    show();
    document.querySelector(`#view-${currentView()} h1`).focus();
    window.scrollTo(0, 0);
  });
  bus.addEventListener("holdout", show);
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("main").focus();
    byId("main").scrollIntoView();
  });
}

function show() {
  const name = currentView();
  const inside = session.holdout !== null;
  for (const section of document.querySelectorAll("main > section")) {
    section.hidden = section.id !== `view-${name}`;
  }
  for (const link of document.querySelectorAll("#nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  byId("nav").hidden = !inside;
  byId("nav-custodian").hidden = !isCustodian();
  for (const of of OF_MODELS) document.querySelector(`#nav a[href="#${of}"]`).hidden = !hasModels();
  byId("budget").hidden = !inside || name === "planner";
  byId("frame").classList.toggle("with-budget", inside && name !== "planner");
  const title = document.querySelector(`#view-${name} h1`).textContent;
  document.title = inside ? `${title} · ${session.holdout.title ?? session.holdout.name} · Holdfast` : "Holdfast";
  shown.get(name)?.();
}
