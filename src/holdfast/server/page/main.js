// The start: wire every view, then come in.

import { startAnswers } from "./answers.js";
import { startAsk } from "./ask.js";
import { startCustodian } from "./custodian.js";
import { byId } from "./elements.js";
import { startGauge } from "./gauge.js";
import { startLeaderboard } from "./leaderboard.js";
import { startModels } from "./models.js";
import { startPlanner } from "./planner.js";
import { enter, keptToken, leave, startBar } from "./session.js";
import { startTheme } from "./theme.js";
import { startTip } from "./tip.js";
import { settled, trouble, worded } from "./trouble.js";
import { startViews } from "./views.js";

startTheme();
startTip();
startBar();
startGauge();
startAsk();
startModels();
startAnswers();
startLeaderboard();
startPlanner();
startCustodian();
startViews(); // last: a view is shown when all have forgotten the holdout before
startDoor();

function startDoor() {
  byId("sign-in").addEventListener("submit", (event) => {
    event.preventDefault();
    signIn(byId("token").value.trim());
  });
  byId("sign-out").addEventListener("click", () => {
    leave();
    settled();
    byId("token").focus();
  });
  byId("sign-in-again").addEventListener("click", () => {
    leave();
    byId("token").focus();
  });
  comeIn();
}

/** With the token of this tab, or without one where the server is open. */
async function comeIn() {
  try {
    await enter(keptToken());
  } catch (error) {
    leave();
    if (error.status !== 401) trouble(error);
    else if (keptToken()) byId("token-error").textContent = "The token is no longer good.";
  }
}

async function signIn(secret) {
  const said = byId("token-error");
  said.textContent = secret ? "" : "Paste a token.";
  if (!secret) return;
  try {
    await enter(secret);
    byId("token").value = "";
    settled();
    document.querySelector("main > section:not([hidden]) h1").focus();
  } catch (error) {
    said.textContent = error.status === 401 ? "This token is unknown, expired or revoked." : worded(error);
  }
}
