// What can be asked of the chosen holdout: verbs, parts, columns, metrics. Loaded once for each.

import { send } from "./api.js";
import { bus, path, session } from "./session.js";

let loading = null;
bus.addEventListener("holdout", () => { loading = null; });

/** The catalog of the chosen holdout. */
export function catalog() {
  if (loading === null && session.holdout !== null) {
    const asked = send("GET", path("columns"), { retries: 2 });
    loading = asked;
    asked.catch(() => { if (loading === asked) loading = null; });
  }
  return loading ?? Promise.reject(new DOMException("no holdout", "AbortError"));
}
