// The last hour of this node: throughput and command durations.

import { $, h, svg, text } from "./dom.js";
import { on, state } from "./live.js";
import { nanos, short } from "./format.js";

const H = 190, LEFT = 2, BOTTOM = 20, TOP = 14;
const SPAN_MIN = 5 * 60_000, SPAN_MAX = 3_600_000;

const CHARTS = [
  {
    id: "chart-throughput", name: "Throughput", stacked: true, shown: (n) => `${short(n)}/s`,
    series: [["reads", "reads", "tone-a"], ["writes", "writes", "tone-b"], ["others", "others", "tone-d"]],
  },
  {
    id: "chart-latency", name: "Latency", stacked: false, shown: nanos,
    series: [["write_p99", "writes p99", "tone-b"], ["read_p99", "reads p99", "tone-a"], ["write_p50", "writes p50", "tone-c"], ["read_p50", "reads p50", "tone-d"]],
  },
];

export function begin() {
  for (const chart of CHARTS) make(chart);
  on("hour", () => CHARTS.forEach(draw));
  on("status", () => { for (const it of document.querySelectorAll('[data-of="node"]')) text(it, `of ${state.status.node}, the last hour`); });
}

function make(chart) {
  chart.svg = svg("svg", { role: "img", tabindex: "0" });
  chart.keys = h("ul", { class: "keys" }, ...chart.series.map(([, label, tone]) => h("li", {}, h("i", { class: `dot ${tone}` }), label, h("b"))));
  const place = (event) => event.clientX - chart.svg.getBoundingClientRect().left;
  chart.svg.addEventListener("pointermove", (event) => point(chart, nearest(chart, place(event))));
  chart.svg.addEventListener("pointerleave", () => point(chart, null));
  chart.svg.addEventListener("blur", () => point(chart, null));
  chart.svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !state.hour) return;
    event.preventDefault();
    const last = state.hour.at.length - 1;
    point(chart, Math.min(Math.max((chart.cursor ?? last) + step, 0), last));
  });
  $(chart.id).append(chart.svg, chart.keys);
  new ResizeObserver(() => { if (state.hour) draw(chart); }).observe($(chart.id));
  chart.cursor = null;
}

function frame(W) {
  const { at } = state.hour;
  const until = Math.max(at.at(-1) ?? Date.now(), Date.now() - 10_000);
  const long = Math.min(SPAN_MAX, Math.max(SPAN_MIN, until - (at[0] ?? until)));
  return { from: until - long, until, x: (time) => LEFT + (W - LEFT) * (time - (until - long)) / long };
}

/** Returns the next round number above. */
function above(n) {
  const power = 10 ** Math.floor(Math.log10(Math.max(n, 1)));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((factor) => factor * power).find((round) => round >= n);
}

function draw(chart) {
  const { hour } = state;
  const W = chart.svg.clientWidth || 640;
  chart.svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
  const { x, from, until } = frame(W);
  const columns = chart.series.map(([name]) => hour[name]);
  const sums = hour.at.map((_, i) => (chart.stacked ? columns.reduce((sum, column) => sum + column[i], 0) : Math.max(...columns.map((column) => column[i]))));
  const top = above(Math.max(...sums, chart.stacked ? 10 : 1000));
  const y = (value) => TOP + (H - BOTTOM - TOP) * (1 - value / top);
  const parts = [];
  for (const share of [0, 0.5, 1]) {
    parts.push(svg("line", { class: "grid", x1: 0, x2: W, y1: y(top * share), y2: y(top * share) }));
    if (share) parts.push(label(chart.shown(top * share), 2, y(top * share) - 4, "start"));
  }
  const minutes = (until - from) / 60_000, step = (minutes > 30 ? 10 : minutes > 12 ? 5 : 1) * (W < 420 ? 2 : 1);
  for (let back = step; back < minutes; back += step) parts.push(label(`−${back} min`, x(until - back * 60_000), H - 4, "middle"));
  parts.push(label("now", W - 2, H - 4, "end"));
  parts.push(...(chart.stacked ? areas(chart, columns, x, y) : lines(chart, columns, x, y)));
  chart.x = x;
  chart.svg.replaceChildren(...parts);
  chart.svg.setAttribute("aria-label", `${chart.name} of ${state.status?.node ?? "this node"}: now ${chart.shown(sums.at(-1) ?? 0)}, at most ${chart.shown(Math.max(0, ...sums))}`);
  point(chart, chart.cursor);
}

function label(words, x, y, anchor) {
  const element = svg("text", { x, y, "text-anchor": anchor });
  element.textContent = words;
  return element;
}

function areas(chart, columns, x, y) {
  const { at } = state.hour;
  if (at.length < 2) return [];
  let below = at.map(() => 0);
  return columns.map((column, n) => {
    const upper = below.map((value, i) => value + column[i]);
    const edge = (values) => values.map((value, i) => `${x(at[i]).toFixed(1)},${y(value).toFixed(1)}`);
    const path = svg("path", { class: `area ${chart.series[n][2]}`, d: `M${edge(upper).join("L")}L${edge(below).reverse().join("L")}Z` });
    below = upper;
    return path;
  });
}

function lines(chart, columns, x, y) {
  const { at } = state.hour;
  return columns.map((column, n) => {
    let d = "", wasShown = false;
    column.forEach((value, i) => {
      // Nothing ran: there is no duration to show.
      if (value) d += `${wasShown ? "L" : "M"}${x(at[i]).toFixed(1)},${y(value).toFixed(1)}`;
      wasShown = value > 0;
    });
    return svg("path", { class: `line ${chart.series[n][2]}`, d });
  });
}

function nearest(chart, px) {
  if (!state.hour?.at.length || !chart.x) return null;
  let best = 0;
  state.hour.at.forEach((time, i) => { if (Math.abs(chart.x(time) - px) < Math.abs(chart.x(state.hour.at[best]) - px)) best = i; });
  return best;
}

/** Shows the values of one moment; of the latest one if none is chosen. */
function point(chart, index) {
  chart.cursor = index;
  chart.svg.querySelector(".cursor")?.remove();
  const { hour } = state;
  if (!hour?.at.length || !chart.x) return;
  const shown = Math.min(index ?? hour.at.length - 1, hour.at.length - 1);
  if (index !== null) {
    const x = chart.x(hour.at[shown]);
    chart.svg.append(svg("line", { class: "cursor", x1: x, x2: x, y1: TOP, y2: H - BOTTOM }));
  }
  chart.series.forEach(([name], i) => text(chart.keys.children[i].querySelector("b"), hour[name][shown] || chart.stacked ? chart.shown(hour[name][shown]) : "–"));
}
