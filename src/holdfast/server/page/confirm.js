// A question before something that cannot be taken back.

import { byId } from "./elements.js";

/** True if the answer is yes. Escape, or the other button, is no. */
export function confirmed(title, text, yes) {
  const dialog = byId("confirm");
  byId("confirm-title").textContent = title;
  byId("confirm-text").textContent = text;
  byId("confirm-yes").textContent = yes;
  return new Promise((resolve) => {
    let answer = false;
    byId("confirm-yes").onclick = () => {
      answer = true;
      dialog.close();
    };
    byId("confirm-no").onclick = () => dialog.close();
    dialog.addEventListener("close", () => resolve(answer), { once: true });
    dialog.showModal();
    byId("confirm-no").focus();
  });
}
