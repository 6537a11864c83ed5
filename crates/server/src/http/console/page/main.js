// Start here: the page's parts, each in its own file, and the two features that belong to none.

import { $, text } from "./dom.js";
import { on, start, state } from "./live.js";
import * as summary from "./summary.js";
import * as buckets from "./buckets.js";
import * as members from "./members.js";
import * as moves from "./moves.js";
import * as charts from "./charts.js";
import * as timers from "./timers.js";
import * as slowlog from "./slowlog.js";
import * as operate from "./operate.js";

const THEMES = ["", "light", "dark"];
const WORDS = { "": "as the system", light: "light", dark: "dark" };

function showTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  $("theme").title = `Colours: ${WORDS[theme]}`;
  document.dispatchEvent(new Event("themechange"));
}

function beginTheme() {
  let theme = localStorage.getItem("theme") ?? "";
  if (!THEMES.includes(theme)) theme = "";
  $("theme").addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    localStorage.setItem("theme", theme);
    showTheme(theme);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => showTheme(theme));
  showTheme(theme);
}

function showLive() {
  $("live").dataset.state = state.live ? "live" : "away";
  text($("live"), state.live ? "live" : "the node does not answer");
}

beginTheme();
for (const part of [summary, buckets, members, moves, charts, timers, slowlog, operate]) part.begin();
on("live", showLive);
start();
