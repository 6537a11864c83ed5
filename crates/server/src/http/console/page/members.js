// The nodes: the load of each against its target, and its condition.

import { $, h, sync, text } from "./dom.js";
import { on, state } from "./live.js";
import { ago, bytes, many, short, span } from "./format.js";

/** Time for which departed nodes are listed. */
const GONE_SHOWN_MS = 15 * 60_000;

export function begin() {
  on("status", show);
}

function show() {
  const { status } = state;
  const gone = (status.gone ?? []).filter((it) => Date.now() - it.at < GONE_SHOWN_MS);
  const most = Math.max(1, ...status.members.map((it) => Math.max(it.primaries + it.backups, it.ideal)));
  const rows = [
    ...status.members.map((member) => ({ key: `m ${member.id}`, member, most })).sort(byName),
    ...gone.map((gone) => ({ key: `g ${gone.name}`, gone })),
  ];
  sync($("members-table").tBodies[0], rows, {
    key: (row) => row.key,
    make: () => h("tr", {}, h("td"), h("td"), ...["memory", "ops/s", "lag"].map((label) => h("td", { class: "num", "data-label": label }))),
    update: (element, row) => (row.member ? showMember(element, row) : showGone(element, row.gone)),
  });
  const zones = new Set(status.members.map((it) => it.zone)).size;
  text($("members-note"), `${many(status.members.length, "member")}${zones > 1 ? ` in ${zones} zones` : ""}, as ${status.node} sees them`);
}

const byName = (a, b) => a.member.name.localeCompare(b.member.name, "en", { numeric: true });

/** Returns a member's condition in one word, its description and its severity. */
export function condition(member) {
  if (member.silent_millis) return ["silent", `silent for ${span(member.silent_millis)}`, "bad"];
  if (member.levels?.sick) return ["sick", "sick: gets no more buckets", "bad"];
  if (member.levels?.full) return ["full", "full: near maxmemory, takes no more copies", "warn"];
  if (member.weight === 0 && member.primaries + member.backups > 0) return ["leaving", "leaving", "warn"];
  if (member.weight === 0) return ["witness", "witness: votes, holds nothing", ""];
  if (member.levels?.busy) return ["moving", "in a move", "move"];
  return ["well", "", ""];
}

function showMember(row, { member, most }) {
  const { status } = state;
  const [word, pill, tone] = condition(member);
  row.dataset.state = word;
  row.dataset.name = member.name;
  const [who, load, memory, ops, lag] = row.cells;
  const here = member.name === status.node;
  const facts = [`${member.host}:${member.client_port}`, here && "this node", member.name === status.leader && "leader", member.vote === "learner" && "learner", member.zone && `zone ${member.zone}`, member.weight > 1 && `weight ${member.weight}`];
  const words = facts.filter(Boolean).join(", ");
  if (who.dataset.words !== words + pill) {
    who.dataset.words = words + pill;
    const name = here || !member.http_port ? member.name : h("a", { href: `http://${member.host.includes(":") ? `[${member.host}]` : member.host}:${member.http_port}/` }, member.name);
    who.replaceChildren(h("span", { class: "who" }, name), pill ? h("span", { class: `pill ${tone}` }, pill) : "", h("div", { class: "sub" }, words));
  }
  showShare(load, member, most);
  text(memory, member.levels ? bytes(member.levels.bytes) : "–");
  text(ops, member.levels ? short(member.levels.ops_per_second) : "–");
  text(lag, member.levels ? bytes(member.levels.lag_bytes ?? 0) : "–");
}

function showShare(cell, member, most) {
  if (!cell.firstChild) {
    cell.append(h("div", { class: "share" }, h("i", { class: "p" }), h("i", { class: "s" }), h("span", { class: "ideal" })), h("div", { class: "sub" }));
  }
  const [bar, words] = cell.children;
  const part = (n) => `${100 * n / most}%`;
  const [primaries, backups, ideal] = bar.children;
  primaries.style.width = part(member.primaries);
  backups.style.width = part(member.backups);
  ideal.style.left = `calc(${part(member.ideal)} - 1px)`;
  ideal.hidden = member.weight === 0;
  const sum = member.primaries + member.backups;
  text(words, `${member.primaries} + ${member.backups} = ${sum}${member.weight ? ` of ${member.ideal}` : ""}`);
  cell.title = `${many(member.primaries, "primary", "primaries")} and ${many(member.backups, "backup")}; its share is ${member.ideal}`;
}

function showGone(row, gone) {
  const isDead = gone.how === "dead";
  row.dataset.state = gone.how;
  row.dataset.name = gone.name;
  const [who, load, ...rest] = row.cells;
  const words = isDead ? "its lease expired; other nodes serve its buckets" : "it handed its buckets over first";
  if (!who.firstChild) {
    who.append(h("span", { class: "who" }, gone.name), h("span", { class: isDead ? "pill bad" : "pill" }), h("div", { class: "sub" }, words));
  }
  text(who.querySelector(".pill"), `${isDead ? "gone" : "left"} ${ago(gone.at)}`);
  text(load, isDead ? `held ${gone.primaries} + ${gone.backups}` : "");
  for (const cell of rest) text(cell, "–");
}
