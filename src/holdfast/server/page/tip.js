// One tooltip, for whatever is pointed at or focused.

import { byId } from "./elements.js";

/** Show the text while the element is pointed at or has the focus. */
export function tipped(element, text) {
  element.addEventListener("pointerenter", () => show(element, text));
  element.addEventListener("pointerleave", hide);
  element.addEventListener("focus", () => show(element, text));
  element.addEventListener("blur", hide);
  return element;
}

/** Escape sends it away, as it should. */
export function startTip() {
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  window.addEventListener("hashchange", hide);
  window.addEventListener("scroll", hide, { passive: true });
}

function show(element, text) {
  const tip = byId("tip");
  tip.textContent = text;
  tip.hidden = false;
  const at = element.getBoundingClientRect();
  const size = tip.getBoundingClientRect();
  const width = document.documentElement.clientWidth;
  const left = Math.min(width - size.width - 8, Math.max(8, at.left + at.width / 2 - size.width / 2));
  const above = at.top - size.height - 8;
  tip.style.left = `${left + window.scrollX}px`;
  tip.style.top = `${(above > 4 ? above : at.bottom + 8) + window.scrollY}px`;
}

function hide() {
  byId("tip").hidden = true;
}
