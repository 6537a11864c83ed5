// The summary at the top: the cluster's health, and this node's activity.

import { $, h, svg, text } from "./dom.js";
import { on, state } from "./live.js";
import { ago, bytes, count, many, nanos, short, span } from "./format.js";

const RATES_MAX = 60;
const rates = [];
let last = null;

export function begin() {
  for (const [id, label] of [["ops", "Commands per second"], ["p99", "p99 of writes"], ["keys", "Keys"], ["memory", "Memory"], ["clients", "Clients"], ["hits", "Hit rate"]]) {
    const tile = h("div", { class: "tile", id: `tile-${id}` },
      h("div", { class: "label" }, label), h("div", { class: "value" }, "–"), h("div", { class: "note" }, "\u00a0"));
    $("tiles").append(tile);
  }
  $("tile-ops").append(svg("svg", { viewBox: `0 0 ${RATES_MAX - 1} 20`, preserveAspectRatio: "none", "aria-hidden": "true" }, svg("path")));
  on("live status map buckets", showHealth);
  on("node", showNode);
  on("hour", showLatency);
}

const TONES = { failing: "bad", warning: "warn" };

/** Returns the cluster's state: a severity, a headline and a detail line. Also read by the tests. The verdict is the node's. */
export function health({ live, status, map }) {
  if (!live) return ["bad", "This node does not answer", "Showing the last known state; reconnecting."];
  if (!status || !map) return ["unknown", "Connecting", "Waiting for data from the node."];
  const [worst, ...others] = status.health.problems;
  if (worst) {
    const more = others.length ? ` Also: ${others.map((it) => it.what).join("; ")}.` : "";
    return [TONES[status.health.severity], sentence(worst.what), `${sentence(worst.effect)}. ${sentence(worst.advice)}.${more}`];
  }
  const nodes = many(status.members.length, "node");
  const wanted = Math.min(status.members.filter((it) => it.weight > 0).length, 1 + Number(status.settings.backups));
  const dead = (status.gone ?? []).filter((it) => it.how === "dead" && Date.now() - it.at < 60_000);
  if (status.moves.length) return ["moving", `Rebalancing: ${many(status.moves.length, "move")} in flight`, "Clients are not interrupted."];
  if (dead.length) return ["good", `All is well again, without ${dead[0].name}`, `It failed ${ago(dead[0].at)}; the others have taken over its buckets, and all copies are restored.`];
  if (status.members.length === 1) return ["good", "One node, and all is well", "Start another with --join, and every bucket gets a backup. How: at the end of this page."];
  return ["good", "All is well", `${nodes}, ${many(map.buckets.size, "bucket")}, each on ${many(wanted, "node")}; nothing is moving.`];
}

const sentence = (words) => words[0].toUpperCase() + words.slice(1);

function showHealth() {
  const [tone, title, more] = health(state);
  $("health").dataset.state = tone;
  text($("health-title"), title);
  text($("health-text"), more);
  const { status } = state;
  if (!status) return;
  text($("where-node"), status.node);
  text($("where-cluster"), `· cluster ${status.cluster.slice(0, 6)}, epoch ${count(state.map?.epoch ?? status.epoch)}${status.generation > 1 ? `, generation ${status.generation}` : ""}`);
  document.title = `${status.node} – OpenCluster`;
}

function tile(id, value, note) {
  const [, shown, more] = $(`tile-${id}`).children;
  text(shown, value);
  text(more, note);
}

function showNode() {
  const { node } = state;
  // A counter that went back means that the node was restarted: there is no rate yet.
  if (last && node.uptime_ms > last.uptime_ms) {
    const rate = Math.max(0, node.commands.total - last.commands.total) / ((node.uptime_ms - last.uptime_ms) / 1000);
    rates.push(rate);
    if (rates.length > RATES_MAX) rates.shift();
    tile("ops", short(rate), `${short(node.commands.total)} in all`);
    drawRates();
  }
  last = node;
  tile("keys", short(node.keys.held), `${short(node.keys.expired)} expired, ${short(node.keys.evicted)} evicted`);
  tile("memory", bytes(node.memory.allocated_bytes), node.memory.max_bytes ? `of ${bytes(node.memory.max_bytes)}` : `${bytes(node.memory.resident_bytes)} resident`);
  tile("clients", count(node.clients.connected), `up for ${span(node.uptime_ms)}`);
  const lookups = node.lookups.hit + node.lookups.miss;
  tile("hits", lookups ? `${(100 * node.lookups.hit / lookups).toFixed(1)} %` : "–", lookups ? `${short(lookups)} lookups` : "nothing read yet");
}

function drawRates() {
  const top = Math.max(1, ...rates) * 1.1;
  const points = rates.map((rate, i) => `${RATES_MAX - rates.length + i},${(19 - 18 * rate / top).toFixed(2)}`);
  $("tile-ops").querySelector("path").setAttribute("d", points.length > 1 ? `M${points.join(" L")}` : "");
}

function showLatency() {
  const p99 = state.hour?.write_p99.at(-1);
  const p50 = state.hour?.write_p50.at(-1);
  tile("p99", p99 ? nanos(p99) : "–", p99 ? `p50 ${nanos(p50)}` : "nothing written lately");
}
