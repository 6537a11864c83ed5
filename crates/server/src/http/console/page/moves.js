// Moves in progress and their rules, changes and their reasons, and results of merges.

import { $, h, sync, text } from "./dom.js";
import { on, state } from "./live.js";
import { ago, bytes, count, many, span } from "./format.js";

const HISTORY_MAX = 400;
const ROWS_MAX = 60;
const history = new Map();

/** Explanations of the balancing rules. */
const RULES = {
  "even primaries": "the giver serves at least two buckets more than the taker",
  "chain of promotions": "no single promotion helps, but a chain of them does",
  "too few backups": "the bucket has fewer backups than it should have",
  "even totals": "the giver holds more than its share, the taker less",
  exchange: "the giver gets as much as it gives",
  "too many copies": "there are more copies than wanted",
  leaving: "the giver is about to leave",
};

export function begin() {
  on("status", () => { showMoves(); showHistory(); showMerges(); });
}

function showMoves() {
  const { moves } = state.status;
  text($("moves-note"), moves.length ? `${many(moves.length, "move")} in flight` : "none in flight");
  sync($("moves-list"), moves, {
    key: (it) => `${it.bucket} ${it.taker}`,
    make: () => h("li", {}, h("div", { class: "line" }, h("strong", { class: "mono" }), h("span"), h("span", { class: "soft small" })), h("div", { class: "bar" }, h("i")), h("div", { class: "soft small" })),
    update: (row, it) => {
      const [line, bar, why] = row.children;
      text(line.children[0], it.bucket);
      text(line.children[1], `${it.giver} → ${it.taker}`);
      const from = it.source && it.source !== it.giver ? `, bytes from ${it.source}` : "";
      text(line.children[2], `${it.kind}${from}, ${it.percent} %, ${bytes(it.sent_bytes)} in ${span(it.millis)}`);
      bar.firstChild.style.width = `${it.percent}%`;
      bar.hidden = it.kind === "promote";
      text(why, it.rule ? `${it.rule}: ${RULES[it.rule] ?? ""}` : "rule known only to the giver");
    },
  });
}

/** Maximum distance, in lines and in time, between changes that are grouped. */
const GROUPS_BACK = 12;
const TOGETHER_MS = 10_000;
const HASHMASK = /[0-9A-F]{4}\/[0-9A-F]{4}/;

/** Groups the same change of several buckets at about the same time into one line. */
export function grouped(changes) {
  const groups = [];
  for (const change of changes) {
    const bucket = change.what.match(HASHMASK)?.[0];
    const pattern = change.what.replace(HASHMASK, "•");
    const lately = groups.slice(-GROUPS_BACK);
    const same = bucket && lately.find((it) => it.pattern === pattern && it.since - change.at < TOGETHER_MS);
    if (same) {
      same.buckets.push(bucket);
      same.since = change.at;
    } else {
      groups.push({ ...change, pattern, since: change.at, buckets: bucket ? [bucket] : [] });
    }
  }
  return groups;
}

function showHistory() {
  for (const change of state.status.changes) history.set(`${change.epoch} ${change.what}`, change);
  const all = [...history.values()].sort((a, b) => b.epoch - a.epoch || b.at - a.at);
  for (const old of all.slice(HISTORY_MAX)) history.delete(`${old.epoch} ${old.what}`);
  sync($("history"), grouped(all).slice(0, ROWS_MAX), {
    key: (it) => `${it.pattern} ${it.buckets.at(-1) ?? it.epoch}`,
    make: () => h("li", {}, h("time"), h("div", {}, h("span", { class: "what" }), " ", h("span", { class: "why" }))),
    update: (row, it) => {
      const [time, words] = row.children;
      row.dataset.kind = it.what.includes("declared dead") ? "bad" : "";
      text(time, ago(it.at));
      time.title = `${new Date(it.at).toLocaleString()}, epoch ${it.epoch}`;
      const what = it.buckets.length > 1 ? it.pattern.replace("•", many(it.buckets.length, "bucket")) : it.what;
      text(words.children[0], what);
      words.children[0].title = it.buckets.join(", ");
      text(words.children[1], it.why);
    },
  });
}

const MERGED = [
  ["taken", "taken over", "not changed on this side"],
  ["same", "the same", "both sides had the same value"],
  ["lost_here", "ours lost", "changed on both sides; ours was older and was replaced"],
  ["lost_there", "theirs lost", "changed on both sides; ours was kept"],
  ["unsure", "unsure", "absent here; unknown whether they were deleted"],
];

/** Shows split-brain merges: the members still searched for, and the results for keys after a merge. */
function showMerges() {
  const { merged = {}, estranged = [], yields } = state.status;
  const all = MERGED.reduce((sum, [name]) => sum + (merged[name] ?? 0), 0);
  $("merges").hidden = !all && !estranged.length && !yields;
  if ($("merges").hidden) return;
  const words = [
    yields && "This side of the split ends in favour of another and hands over its writes.",
    estranged.length && `Members not reachable yet: ${estranged.join(", ")}.`,
    all && "Keys that another side had changed and that this node serves (CLUSTER CONFLICTS lists conflicts):",
  ];
  const facts = MERGED.map(([name, label, why]) => h("div", { title: why }, h("dt", {}, label), h("dd", {}, count(merged[name] ?? 0))));
  $("merges-body").replaceChildren(h("p", { class: "soft" }, words.filter(Boolean).join(" ")), all ? h("dl", { class: "facts" }, ...facts) : "");
}
