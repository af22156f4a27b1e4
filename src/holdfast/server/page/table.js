// Tables: headings with a scope, a caption, their own box to scroll in, pages.

import { count, shortReceipt } from "./format.js";
import { el, fill, onWidth } from "./elements.js";

/**
 * A table in a box of its own. Columns are {label, class?, unseen?, drawn?, counts?}; a row is {cells, class?, id?} and
 * a cell text or an element; with `lead`, the first cell of a row heads it.
 */
export function table({ caption, columns, rows, lead = false, stacks = false, quiet = false }) {
  const heads = columns.map((each) =>
    el("th", { scope: "col", role: "columnheader", class: each.class },
      each.unseen ? el("span", { class: "unseen" }, each.label) : each.label, each.drawn ?? null));
  const body = rows.map((row) => el("tr", { role: "row", class: row.class, id: row.id }, row.cells.map((cell, i) => {
    const heading = lead && i === 0;
    const given = { class: columns[i].class, role: heading ? "rowheader" : "cell" };
    if (stacks && !columns[i].unseen && (!heading || columns[i].counts)) given["data-label"] = columns[i].label;
    return el(heading ? "th" : "td", heading ? { ...given, scope: "row" } : given, cell ?? "–");
  })));
  const made = el("table", { role: "table", class: stacks ? "stacks" : null },
    el("caption", { class: quiet ? "unseen" : null }, caption),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, heads)),
    el("tbody", { role: "rowgroup" }, body));
  return scrollable(el("div", { class: "scroll" }, made), caption);
}

/** A box that can be reached and scrolled with the keyboard, while there is something to scroll. */
function scrollable(box, label) {
  onWidth(box, () => {
    const wide = box.scrollWidth > box.clientWidth + 1;
    const given = { tabindex: "0", role: "region", "aria-label": label };
    for (const [name, value] of Object.entries(given)) {
      if (wide) box.setAttribute(name, value);
      else box.removeAttribute(name);
    }
  });
  return box;
}

/** A receipt in short; a click copies it whole. */
export function receiptButton(receipt) {
  if (!receipt) return "–";
  const button = el("button", { type: "button", class: "receipt", title: receipt }, shortReceipt(receipt));
  button.setAttribute("aria-label", `Copy the receipt ${shortReceipt(receipt)}`);
  button.addEventListener("click", async () => {
    const shown = await copied(receipt);
    button.textContent = shown ? "copied" : "copying is not allowed here";
    setTimeout(() => { button.textContent = shortReceipt(receipt); }, 1500);
  });
  return button;
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // no secure context, or the browser was told no: the title shows it whole
  }
}

/** Rows in pages; `draw` makes the table of one page's rows. */
export class Pages {
  constructor(box, size, noun, draw) {
    Object.assign(this, { box, size, noun, draw, rows: [], page: 0 });
  }

  /** Show these rows, from the first page unless the page is kept. */
  show(rows, { keep = false } = {}) {
    this.rows = rows;
    this.page = keep ? Math.min(this.page, this.last) : 0;
    this.#render();
  }

  /** The page that holds the row at this place. */
  turnTo(place) {
    this.page = Math.floor(place / this.size);
    this.#render();
  }

  get last() {
    return Math.max(0, Math.ceil(this.rows.length / this.size) - 1);
  }

  #render(focused = null) {
    const first = this.page * this.size;
    const shown = this.rows.slice(first, first + this.size);
    fill(this.box, this.draw(shown, first), this.last > 0 && this.#pager(first, shown.length));
    const buttons = [...this.box.querySelectorAll(".pager button")];
    buttons.find((each) => each.textContent === focused && !each.disabled)?.focus();
  }

  #pager(first, many) {
    const go = (label, page) => el("button", {
      type: "button", class: "small", disabled: page < 0 || page > this.last || page === this.page,
      on: { click: () => { this.page = page; this.#render(label); } },
    }, label);
    return el("nav", { class: "pager", "aria-label": `Pages of ${this.noun}` },
      go("Newest", 0), go("Newer", this.page - 1), go("Older", this.page + 1), go("Oldest", this.last),
      el("span", { role: "status" }, `${count(first + 1)}–${count(first + many)} of ${count(this.rows.length)}`));
  }
}
