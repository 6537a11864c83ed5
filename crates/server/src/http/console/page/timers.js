// Timers: their number, their lateness, and undelivered ones.

import { $, ask, h, sync, text, whileSeen } from "./dom.js";
import { ago, count, short } from "./format.js";

const EVERY_MS = 5000;
const FACTS = [["timers", "pending"], ["calls-waiting", "due, waiting"], ["calls-in-flight", "being called"], ["popped", "popped"], ["failed", "failed calls"], ["given-up", "given up"]];

export function begin() {
  $("timers-body").append(
    h("dl", { class: "facts" }, ...FACTS.map(([name, label]) => h("div", {}, h("dt", {}, label), h("dd", { "data-fact": name }, "–")))),
    h("h3", {}, "How late they popped"),
    h("div", { class: "late", id: "late", role: "img" }),
    h("h3", { id: "dead-title" }, "Dead letters"),
    h("div", { class: "letters", tabindex: "0", "aria-labelledby": "dead-title" }, h("ol", { class: "history", id: "dead" })),
  );
  whileSeen(EVERY_MS, load);
}

async function load() {
  const [stats, letters] = await Promise.all([ask("/timers/stats"), ask("/timers/dead")]);
  if (!stats) return text($("timers-note"), "statistics are not available right now");
  const silent = stats["silent-nodes"]?.length ?? 0;
  text($("timers-note"), silent ? `without ${silent} that did not answer` : "all nodes together");
  for (const [name] of FACTS) {
    const place = document.querySelector(`[data-fact="${name}"]`);
    text(place, short(stats[name]));
    place.className = name === "given-up" && stats[name] ? "bad" : "";
  }
  showLateness(stats.lateness);
  showDead(letters?.dead ?? []);
}

function showLateness(lateness) {
  const most = Math.max(1, ...lateness.map((it) => it.count));
  const words = (bound) => (bound === "+Inf" ? "more" : bound < 1000 ? `${bound} ms` : `${bound / 1000} s`);
  sync($("late"), lateness, {
    key: (it) => it["up-to-ms"],
    make: (it) => h("div", {}, h("i"), h("span", {}, words(it["up-to-ms"]))),
    update: (bar, it) => {
      bar.firstChild.style.height = `${100 * it.count / most}%`;
      bar.title = `up to ${words(it["up-to-ms"])}: ${count(it.count)}`;
    },
  });
  const all = lateness.reduce((sum, it) => sum + it.count, 0);
  $("late").setAttribute("aria-label", all ? lateness.filter((it) => it.count).map((it) => `${count(it.count)} up to ${words(it["up-to-ms"])} late`).join(", ") : "none popped yet");
}

function showDead(letters) {
  text($("dead-title"), letters.length ? `Dead letters: ${count(letters.length)}` : "Dead letters: none");
  sync($("dead"), letters.slice(0, 50), {
    key: (it) => `${it.id} ${it["sequence-number"]}`,
    make: (it) => h("li", {}, h("time"), h("div", {}, h("span", { class: "mono" }, it.destination), " ", h("span", { class: "why" }, it.why))),
    update: (row, it) => text(row.firstChild, ago(it["at-ms"])),
  });
}
