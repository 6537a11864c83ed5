// The cluster's settings, and the operations available once the page is unlocked with the token.

import { $, h, sync, text } from "./dom.js";
import { on, state } from "./live.js";
import { markedBucket } from "./buckets.js";

/** The token. Never stored: it is gone with the page. */
let token = "";

const authorization = () => (token ? { authorization: `Bearer ${token}` } : {});

export function begin() {
  $("settings-body").append(
    h("dl", { class: "settings", id: "settings-list" }),
    h("div", { class: "orders", id: "orders" }),
    h("p", { class: "said", id: "said", role: "status" }),
  );
  on("hello", showOrders);
  on("status", () => { showSettings(); showConnect(); });
  document.addEventListener("bucketmarked", showOrders);
}

// ---- Settings.

function showSettings() {
  const rows = Object.entries(state.status.settings).flatMap(([name, value]) => [["dt", name], ["dd", name, value], ["edit", name, value]]);
  sync($("settings-list"), rows, {
    key: ([part, name]) => `${part} ${name}`,
    make: ([part, name]) => {
      if (part !== "edit") return h(part);
      return h("div", {}, h("button", { type: "button", "aria-label": `Change ${name}`, on: { click: () => change(name) } }, "Change"));
    },
    update: (element, [part, name, value]) => {
      if (part === "edit") element.firstChild.hidden = !token;
      else text(element, part === "dt" ? name : value);
    },
  });
  text($("settings-note"), token ? "unlocked" : state.hello?.can_operate ? "read-only until unlocked" : "read-only: the node has no --admin-token-file");
}

function change(name) {
  const input = h("input", { value: state.status.settings[name], "aria-label": name, autocomplete: "off" });
  dialog(`Change ${name}`, "Applies to the whole cluster immediately.", input, "Change", () => order("/api/settings", { name, value: input.value }));
}

// ---- Operations.

function showOrders() {
  const buttons = [];
  const button = (label, run, tone = "") => buttons.push(h("button", { type: "button", class: tone, on: { click: run } }, label));
  if (state.hello?.can_operate && !token) button("Unlock", unlock);
  if (token) {
    const bucket = markedBucket();
    if (bucket) button(`Split ${bucket.name}`, () => split(bucket.name));
    button("Split the largest buckets", () => split(null));
    button("Let this node leave", leave, "danger");
    button("Lock", () => { token = ""; showOrders(); });
  }
  $("orders").replaceChildren(...buttons);
  if (state.status) showSettings();
}

function unlock() {
  const input = h("input", { type: "password", "aria-label": "Token", autocomplete: "off" });
  dialog("Unlock", "The token is the content of the file that the node was started with (--admin-token-file). It is kept in this page only.", input, "Unlock", () => {
    token = input.value.trim();
    showOrders();
  });
}

function split(bucket) {
  const what = bucket ? `Split ${bucket}` : "Split the largest buckets";
  dialog(what, "Each becomes 16 smaller ones. No key moves, every client goes on; it cannot be undone.", null, "Split", () => order("/api/split", bucket ? { bucket } : {}));
}

function leave() {
  const alone = state.status.members.length === 1;
  const words = alone
    ? "This is the last node: if it stops, all data is lost unless it has a data directory."
    : `${state.status.node} hands its buckets over to the others and then stops. No data is lost.`;
  dialog(`Let ${state.status.node} leave`, words, null, "Let it leave", () => order("/api/leave", {}), "danger");
}

async function order(path, body) {
  say("", "…");
  try {
    const answer = await fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json", ...authorization() },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(10_000),
    });
    const told = await answer.json();
    if (answer.status === 401) { token = ""; showOrders(); }
    say(answer.ok ? "" : "bad", told.begun ?? told.error);
  } catch {
    say("bad", "the node did not answer; the outcome is unknown");
  }
}

function say(tone, words) {
  $("said").dataset.state = tone;
  text($("said"), words);
}

function dialog(title, words, input, label, run, tone = "strong") {
  const box = $("dialog");
  const done = (go) => { box.close(); if (go) run(); };
  input?.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    // Otherwise the button that regains the focus would handle this key as well.
    event.preventDefault();
    done(true);
  });
  box.replaceChildren(
    h("h2", { id: "dialog-title" }, title), h("p", {}, words), input ?? "",
    h("div", { class: "orders" },
      h("button", { type: "button", on: { click: () => done(false) } }, "Cancel"),
      h("button", { type: "button", class: tone, on: { click: () => done(true) } }, label)),
  );
  box.showModal();
  (input ?? box.querySelector("button")).focus();
}

// ---- Connecting to the node.

function showConnect() {
  const me = state.status.members.find((it) => it.name === state.status.node);
  if (!me || $("connect-body").firstChild) return;
  const host = location.hostname.replace(/^\[|\]$/g, "");
  const local = ["localhost", "127.0.0.1"].includes(host);
  const at = (local ? "" : ` -h ${host}`) + (me.client_port === 6379 ? "" : ` -p ${me.client_port}`);
  const free = Math.max(...state.status.members.map((it) => it.client_port)) + 1;
  const lines = [
    ["Talk to it", `redis-cli -c${at}`],
    ["Benchmark it", `redis-benchmark --cluster${at} -t set,get -P 16 -q`],
    ["Add a node", `opencluster --port ${free} --join ${me.host}:${me.client_port}`],
    ["The same in a terminal", `opencluster status --node ${me.host}:${me.client_port}`],
  ];
  for (const [label, line] of lines) {
    const copy = h("button", { type: "button", "aria-label": `Copy: ${label}` }, "Copy");
    copy.addEventListener("click", async () => {
      await navigator.clipboard?.writeText(line);
      copy.textContent = "Copied";
      setTimeout(() => { copy.textContent = "Copy"; }, 1500);
    });
    $("connect-body").append(h("h3", {}, label), h("pre", {}, h("code", {}, line), copy));
  }
  const links = [["/metrics", "for Prometheus"], ["/api/cluster", "the cluster as JSON"], ["/api/node", "this node as JSON"], ["/healthz", "for whoever restarts"], ["/readyz", "for whoever routes"]];
  $("connect-body").append(h("h3", {}, "For machines"), h("ul", { class: "legend" }, ...links.map(([path, what]) => h("li", {}, h("a", { href: path }, path), what))));
}
