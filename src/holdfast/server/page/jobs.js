// Long questions: they run on the server, report how far they are, and can be cancelled.

import { isAbort, pause, send } from "./api.js";
import { byId, el, fill } from "./elements.js";
import { bus, mayAsk, path, session, spent } from "./session.js";
import { worded } from "./trouble.js";

const ACTIVE = ["queued", "running"];
const WORDS = { queued: "waiting", running: "running", done: "done", failed: "failed", cancelled: "cancelled" };
let control = new AbortController();

/** Find the jobs that still run, as after loading the page again. */
export function startJobs(onResult) {
  bus.addEventListener("holdout", async () => {
    control.abort();
    control = new AbortController();
    fill(byId("jobs"));
    if (session.holdout === null || !mayAsk()) return;
    try {
      const found = await send("GET", path("jobs"), { signal: control.signal });
      for (const job of found.filter((each) => ACTIVE.includes(each.state))) {
        follow(job, { verb: job.verb, estimator: `a question (${job.verb})` }, onResult);
      }
    } catch {
      // without a list there is nothing to follow
    }
  });
}

/** Ask as a job. */
export async function askAsJob(asked, question, key, onResult) {
  const json = { verb: asked.verb, ...asked.body };
  const job = await send("POST", path("jobs"), { json, key, retries: 3 });
  follow(job, question, onResult);
}

async function follow(job, question, onResult) {
  const { signal } = control;
  const shown = new JobItem(question, () => cancel(job.id, shown));
  byId("jobs").append(shown.item);
  let now = job;
  try {
    for (let wait = 0.2; ACTIVE.includes(now.state); wait = Math.min(2, wait * 1.4)) {
      shown.show(now);
      await pause(wait, signal);
      now = await send("GET", path(`jobs/${job.id}`), { signal, retries: 4 });
    }
    end(now, shown, question, onResult);
  } catch (error) {
    if (!isAbort(error)) shown.end(worded(error));
  }
}

function end(job, shown, question, onResult) {
  spent();
  if (job.state === "done") {
    shown.item.remove();
    onResult(question, job.result, null);
  } else {
    const failed = job.error?.message ?? "The job failed.";
    shown.end(job.state === "cancelled" ? "Cancelled. The question stays paid." : failed);
    onResult(question, null, job);
  }
}

async function cancel(id, shown) {
  try {
    await send("DELETE", path(`jobs/${id}`), { retries: 2 });
  } catch (error) {
    shown.say(worded(error));
  }
}

/** One job in the list. */
class JobItem {
  constructor(question, onCancel) {
    this.bar = el("span", { class: "progress-fill" });
    this.track = el("div", {
      class: "progress-track", role: "progressbar", "aria-valuemin": 0, "aria-valuemax": 100, "aria-label": "Progress",
    }, this.bar);
    this.text = el("p", { class: "help", role: "status" });
    this.button = el("button", { type: "button", class: "small", on: { click: onCancel } }, "Cancel");
    const words = question.estimator?.text ?? question.estimator ?? question.term ?? question.verb;
    this.item = el("li", { class: "card" },
      el("div", { class: "job-head" }, el("span", {}, "Job: ", el("code", {}, words)), this.button),
      this.track, this.text);
  }

  show(job) {
    const share = job.progress;
    const known = typeof share === "number";
    this.bar.style.width = known ? `${100 * share}%` : "0";
    if (known) this.track.setAttribute("aria-valuenow", Math.round(100 * share));
    const tenth = known ? `, ${10 * Math.floor(10 * share)} %` : "";
    this.say(`${WORDS[job.state]}${tenth}. A cancelled question stays paid.`);
  }

  say(text) {
    if (this.text.textContent !== text) this.text.textContent = text; // each change is read out
  }

  end(text) {
    this.say(text);
    this.track.hidden = true;
    const away = { click: () => this.item.remove() };
    this.button.replaceWith(el("button", { type: "button", class: "small", on: away }, "Dismiss"));
  }
}
