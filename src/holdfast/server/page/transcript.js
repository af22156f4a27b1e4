// All answers of the chosen holdout, oldest first; only new ones are fetched.

import { Newest, send } from "./api.js";
import { bus, path } from "./session.js";

const PAGE = 1000; // as many as the server gives at once
const newest = new Newest();
let rows = [];

bus.addEventListener("holdout", () => {
  newest.cancel();
  rows = [];
});

/** What is known already. */
export const known = () => rows;

/** Everything up to now. */
export async function transcript() {
  const signal = newest.next();
  let after = rows.at(-1)?.number ?? 0;
  while (after !== null) {
    const found = await send("GET", path(`transcript?after=${after}&limit=${PAGE}`), { signal, retries: 2 });
    rows = [...rows, ...found.rows];
    after = found.next;
  }
  return rows;
}
