// A slider with round steps and a field to type any value in between.

import { byId, el } from "./elements.js";
import { count } from "./format.js";

const STEPS = [1, 1.5, 2, 3, 5, 7];

const plain = (value) => (Number.isInteger(value) ? count(value) : String(value));

/** Round numbers from low to high, about six for every power of ten. */
export function roundSteps(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    for (const step of STEPS) {
      const value = Number((step * 10 ** power).toPrecision(3));
      if (value >= low && value <= high && (low < 1 || Number.isInteger(value))) found.push(value);
    }
  }
  return found;
}

/** `{id, label, help, values, value, whole}` becomes a slider; `value` is what it says. */
export class Slider {
  constructor(given, onChange) {
    Object.assign(this, given);
    const shown = this.whole ? count(this.value) : String(this.value);
    this.range = el("input", {
      type: "range", id: `${this.id}-slider`, min: 0, max: this.values.length - 1, step: 1,
      "aria-label": `${this.label}, slider`,
    });
    this.typed = el("input", {
      id: this.id, inputmode: "decimal", autocomplete: "off", value: shown,
      "aria-describedby": `${this.id}-help ${this.id}-error`,
    });
    this.element = el("div", { class: "slider field" },
      el("div", { class: "slider-head" }, el("label", { for: this.id }, this.label), this.typed),
      this.range,
      el("p", { class: "help", id: `${this.id}-help` }, this.help),
      el("p", { class: "error", id: `${this.id}-error` }));
    this.#place();
    this.range.addEventListener("input", () => this.#slid(onChange));
    this.typed.addEventListener("input", () => this.#wrote(onChange));
  }

  #slid(onChange) {
    this.value = this.values[Number(this.range.value)];
    this.typed.value = this.whole ? count(this.value) : String(this.value);
    this.range.setAttribute("aria-valuetext", this.typed.value);
    onChange();
  }

  #wrote(onChange) {
    const value = Number(this.typed.value.replaceAll(",", "").trim());
    const [low, high] = this.allowed;
    const good = Number.isFinite(value) && value >= low && value <= high && (!this.whole || Number.isInteger(value));
    const kind = this.whole ? "a whole number" : "a number";
    this.blame(good ? "" : `${this.label} must be ${kind} from ${plain(low)} to ${plain(high)}.`);
    this.value = good ? value : null;
    if (good) this.#place();
    onChange();
  }

  /** The slider's place is the step that is nearest. */
  #place() {
    const far = (value) => Math.abs(Math.log(value / this.value));
    const nearest = this.values.reduce((best, value, i) => (far(value) < far(this.values[best]) ? i : best), 0);
    this.range.value = String(nearest);
    this.range.setAttribute("aria-valuetext", this.whole ? count(this.value) : String(this.value));
  }

  /** Say what is wrong with the value, or that nothing is. */
  blame(message) {
    byId(`${this.id}-error`).textContent = message;
    if (message) this.typed.setAttribute("aria-invalid", "true");
    else this.typed.removeAttribute("aria-invalid");
  }
}
