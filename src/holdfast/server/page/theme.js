// Light, dark, or as the system has it.

import { byId } from "./elements.js";

const KEPT = "holdfast.theme";
const ORDER = ["system", "light", "dark"];

/** The button that goes from one to the next. */
export function startTheme() {
  const button = byId("theme");
  show(button, localStorage.getItem(KEPT));
  button.addEventListener("click", () => {
    const now = ORDER.indexOf(document.documentElement.dataset.theme ?? "system");
    const next = ORDER[(now + 1) % ORDER.length];
    localStorage.setItem(KEPT, next);
    show(button, next);
  });
}

function show(button, theme) {
  const chosen = ORDER.includes(theme) ? theme : "system";
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  button.querySelector("b").textContent = chosen;
}
