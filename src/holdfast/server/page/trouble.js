// What went wrong where no field is to blame.

import { byId } from "./elements.js";
import { leave, session } from "./session.js";

/** Say it on top; a token that is no longer good leads back to the door. */
export function trouble(error) {
  if (error.status === 401 && session.token !== null) {
    leave();
    byId("token-error").textContent = "The token is no longer good: it has expired or was revoked.";
    return;
  }
  const box = byId("trouble");
  box.textContent = worded(error);
  box.dataset.status = error.status;
  box.hidden = false;
}

/** All is well again. */
export function settled() {
  byId("trouble").hidden = true;
}

/** The server can be reached again. */
export function reached() {
  if (byId("trouble").dataset.status === "0") settled();
}

/** An error in words; what the server did not expect is named, so that its log can be searched. */
export function worded(error) {
  const known = error.status !== undefined;
  if (!known) return "The page itself has failed. Load it again.";
  const named = error.status >= 500 && error.request ? ` (request ${error.request})` : "";
  return `${error.message}${named}`;
}
