// Slow commands on this node.

import { $, ask, h, sync, text, whileSeen } from "./dom.js";
import { on, state } from "./live.js";
import { ago, nanos } from "./format.js";

const EVERY_MS = 5000;

export function begin() {
  $("slowlog-body").append(h("ol", { class: "history", id: "slow", tabindex: "0", "aria-label": "Slow commands, the newest first" }));
  whileSeen(EVERY_MS, load);
  on("status", () => { if (!$("slowlog-note").textContent) note([]); });
}

async function load() {
  const log = await ask("/api/slowlog");
  if (!log) return;
  note(log.entries);
  sync($("slow"), log.entries, {
    key: (it) => it.id,
    make: (it) => h("li", {}, h("time"), h("div", {}, h("strong", {}, nanos(it.micros * 1000)), " ", h("span", { class: "args" }, words(it)), h("div", { class: "why small" }, it.name ? `${it.client} (${it.name})` : it.client))),
    update: (row, it) => text(row.firstChild, ago(it.at)),
  });
}

function words(it) {
  const quoted = it.args.map((arg) => (/^[\x21-\x7e]+$/.test(arg) ? arg : JSON.stringify(arg)));
  return quoted.join(" ");
}

function note(entries) {
  const node = state.status?.node ?? "this node";
  text($("slowlog-note"), entries.length ? `of ${node}, the last ${entries.length}` : `nothing slow on ${node}`);
}
