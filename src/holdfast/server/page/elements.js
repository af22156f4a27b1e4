// Elements, made one by one: text is always text, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/** A new element: el("p", { class: "soft", on: { click } }, "text", other). */
export function el(name, given = {}, ...children) {
  return filled(document.createElement(name), given, children);
}

/** A new element of a drawing. */
export function svg(name, given = {}, ...children) {
  return filled(document.createElementNS(SVG, name), given, children);
}

function filled(element, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (name === "on") {
      for (const [kind, listener] of Object.entries(value)) element.addEventListener(kind, listener);
    } else if (value === true) {
      element.setAttribute(name, "");
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, String(value));
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Put these in the place of what was there. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter(Boolean));
  return element;
}

/** A box that says why there is nothing else. */
export function empty(text, more = null) {
  return el("div", { class: "empty" }, el("p", {}, text), more && el("p", {}, more));
}

/** Options of a select, the chosen one kept if it is still there. */
export function options(select, pairs, chosen = select.value) {
  fill(select, pairs.map(([value, text]) => el("option", { value }, text)));
  if (pairs.some(([value]) => value === chosen)) select.value = chosen;
}

/** Run the function once things have been quiet for so long. */
export function debounced(milliseconds, run) {
  let timer = 0;
  const later = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...given), milliseconds);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}

/** Redraw whenever the element's width changes, and only then. */
export function onWidth(element, draw) {
  let width = 0;
  new ResizeObserver(() => {
    const now = Math.floor(element.clientWidth);
    if (now && now !== width) {
      width = now;
      draw();
    }
  }).observe(element);
}
