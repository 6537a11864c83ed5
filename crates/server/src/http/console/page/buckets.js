// The picture: a box for every node, with every bucket at the same position. Moving buckets are animated.

import { $, h, sync, text } from "./dom.js";
import { on, state } from "./live.js";
import { ago, many, span } from "./format.js";
import { ROLE, bands, onArc, paint, palette, squares } from "./draw.js";

const FLIGHTS_MAX = 80;
const FLIGHT_MS = 900;
const FLASH_MS = 700;
/** Gap between boxes, as in the style sheet. */
const GAP = 14;
const SIZES = [0.6, 1, 1.5, 2.2, 3.2];
/** Time for which a departed node keeps its box. */
const DEAD_SHOWN_MS = 120_000;
const LEFT_SHOWN_MS = 20_000;

const calm = matchMedia("(prefers-reduced-motion: reduce)");
const chips = new Map();
let view = squares;
let size = 1;
let colours = null;
let scheduled = false;
let repaint = false;
let flights = [];
let flashes = [];
/** The bucket under the pointer or the cursor, and the pinned one. */
let looked = null;
let kept = null;
/** Fills in progress: "bucket name\ttaker" -> move. */
let filling = new Map();
let silent = new Set();
/** Numbers of primaries and backups, by member. */
let held = [];

export function begin() {
  colours = palette();
  on("map", onMap);
  on("buckets", onBuckets);
  on("status", onStatus);
  $("view-squares").addEventListener("click", () => choose(squares));
  $("view-bands").addEventListener("click", () => choose(bands));
  $("smaller").addEventListener("click", () => resize(-1));
  $("larger").addEventListener("click", () => resize(1));
  document.addEventListener("themechange", () => { colours = palette(); dirty(); });
  new ResizeObserver(showSize).observe($("picture"));
}

export const markedBucket = () => (kept === null ? null : state.map?.buckets.get(kept) ?? null);

function choose(wanted) {
  view = wanted;
  $("view-squares").setAttribute("aria-pressed", String(view === squares));
  $("view-bands").setAttribute("aria-pressed", String(view === bands));
  $("chips").classList.toggle("bands", view === bands);
  dirty();
}

function resize(step) {
  size = Math.min(Math.max(size + step, 0), SIZES.length - 1);
  $("smaller").disabled = size === 0;
  $("larger").disabled = size === SIZES.length - 1;
  showSize();
}

/** Sizes the boxes: as large as there is room, up to the size their buckets need; smaller if there are many. */
function showSize() {
  const buckets = state.map?.buckets.size ?? 16;
  const [least, most] = buckets <= 16 ? [130, 280] : buckets <= 300 ? [150, 310] : [250, 420];
  const crowd = chips.size > 60 ? 0.45 : chips.size > 12 ? 0.7 : 1;
  const width = $("chips").clientWidth + GAP, boxes = Math.max(1, chips.size);
  const fitting = Math.max(1, Math.floor(width / (least * crowd + GAP)));
  // The same number in every row.
  const across = Math.ceil(boxes / Math.ceil(boxes / fitting));
  const wanted = Math.min(width / across - GAP, most) * SIZES[size];
  $("chips").style.setProperty("--chip", `${Math.floor(wanted)}px`);
  dirty();
}

// ---- Events from the node.

function onMap(before) {
  const after = state.map;
  showChips();
  if (before && sameMembers(before, after)) {
    for (const bucket of after.buckets.values()) {
      const old = before.buckets.get(bucket.slot);
      if (old?.mask === bucket.mask) animate(old, bucket);
    }
  }
  dirty();
}

const sameMembers = (a, b) => a.members.length === b.members.length && a.members.every((name, i) => name === b.members[i]);

function onBuckets(changes) {
  for (const { before, after } of changes) if (before) animate(before, after);
  showChips();
  dirty();
}

function onStatus() {
  const { status } = state;
  filling = new Map(status.moves.filter((it) => it.kind !== "promote").map((it) => [`${it.bucket}\t${it.taker}`, it]));
  silent = new Set(status.members.filter((it) => it.silent_millis).map((it) => it.name));
  showChips();
  dirty();
}

function animate(before, after) {
  const name = (index) => state.map.members[index];
  const [old, now] = [before.holders[0], after.holders[0]];
  for (const holder of after.holders) {
    if (!before.holders.includes(holder) && old !== undefined) fly(after, name(old), name(holder), "filling");
  }
  if (old !== now && now !== undefined && before.holders.includes(now)) {
    if (old !== undefined) fly(after, name(old), name(now), "primary");
    flash(after, name(now), "primary");
  }
}

function fly(bucket, from, to, colour) {
  if (calm.matches || document.hidden || flights.length >= FLIGHTS_MAX) return flash(bucket, to, colour);
  flights.push({ bucket, from, to, colour, start: performance.now() + flights.length * 14 });
}

function flash(bucket, on, colour) {
  if (!calm.matches && flashes.length < 3 * FLIGHTS_MAX) flashes.push({ bucket, on, colour, start: performance.now() });
}

// ---- The boxes.

/** Returns every node that has a box, sorted by name: its name, its index in the map, its condition. */
function boxes() {
  const { status, map } = state;
  if (!map) return [];
  const known = new Map((status?.members ?? []).map((it) => [it.name, it]));
  const gone = new Map((status?.gone ?? []).map((it) => [it.name, it]));
  const members = map.members.map((name, index) => ({ name, index, ...standing(name, known.get(name)) }));
  const others = [...gone.values()]
    .filter((it) => !map.members.includes(it.name))
    .filter((it) => Date.now() - it.at < (it.how === "dead" ? DEAD_SHOWN_MS : LEFT_SHOWN_MS))
    .map((it) => ({
      name: it.name,
      index: -1,
      state: it.how,
      word: it.how === "dead" ? `gone ${ago(it.at)}: its lease ran out` : `left ${ago(it.at)}`,
    }));
  // By name, so that no box jumps when a node joins or leaves.
  return [...members, ...others].sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
}

function standing(name, member) {
  if (silent.has(name)) return { state: "silent", word: `silent for ${span(member.silent_millis)}` };
  if (member?.weight === 0 && member.primaries + member.backups > 0) return { state: "leaving", word: "leaving" };
  return { state: state.status?.node === name ? "here" : "well", word: "" };
}

function showChips() {
  const list = boxes();
  const before = chips.size;
  held = state.map ? tally() : [];
  sync($("chips"), list, { key: (it) => it.name, make: makeChip, update: updateChip });
  for (const name of [...chips.keys()]) if (!list.some((it) => it.name === name)) chips.delete(name);
  if (chips.size !== before) showSize();
  const buckets = state.map?.buckets.size ?? 0;
  const slots = buckets ? 16_384 / buckets : 0;
  text($("picture-note"), buckets ? `${many(buckets, "bucket")} on ${many(state.map.members.length, "node")}, ${slots % 1 ? "about " : ""}${many(Math.round(slots), "slot")} each` : "");
  rove();
}

function makeChip(box) {
  const canvas = h("canvas", { role: "application", "aria-roledescription": "picture of buckets", tabindex: "-1" });
  const figure = h("figure", { class: "chip" },
    h("figcaption", {}, h("span", { class: "name", title: box.name }, box.name), h("span", { class: "held" }), h("span", { class: "word" })),
    canvas);
  const chip = { name: box.name, index: box.index, figure, canvas };
  chips.set(box.name, chip);
  canvas.addEventListener("pointermove", (event) => look(chip, bucketUnder(chip, event), event));
  canvas.addEventListener("pointerleave", () => look(chip, null));
  canvas.addEventListener("click", (event) => keep(bucketUnder(chip, event)));
  canvas.addEventListener("keydown", (event) => walk(chip, event));
  canvas.addEventListener("focus", () => { if (canvas.matches(":focus-visible")) look(chip, markedHere() ?? firstBucket()); });
  canvas.addEventListener("blur", () => look(chip, null));
  return figure;
}

function updateChip(figure, box) {
  const chip = chips.get(box.name);
  chip.index = box.index;
  figure.dataset.state = box.state;
  const [, sum, word] = figure.querySelector("figcaption").children;
  const [primaries, backups] = held[box.index] ?? [0, 0];
  text(sum, box.index < 0 ? "" : `${primaries} + ${backups}`);
  sum.title = `${many(primaries, "primary", "primaries")}, ${many(backups, "backup")}`;
  text(word, box.word);
  word.hidden = !box.word;
  const label = box.index < 0 ? `${box.name}: ${box.word}` : `${box.name}: ${sum.title}`;
  if (chip.canvas.getAttribute("aria-label") !== label) chip.canvas.setAttribute("aria-label", label);
}

/** Counts the primaries and backups of every member, in one pass over the buckets. */
function tally() {
  const all = state.map.members.map(() => [0, 0]);
  for (const { holders } of state.map.buckets.values()) {
    holders.forEach((holder, rank) => { all[holder][rank ? 1 : 0]++; });
  }
  return all;
}

// ---- Drawing.

/** Requests a repaint of every box. */
function dirty() {
  repaint = true;
  schedule();
}

function schedule() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(frame);
}

function frame(time) {
  scheduled = false;
  if (!state.map) return;
  const takers = new Set([...filling.values()].map((it) => it.taker));
  paintBoxes(repaint ? [...chips.values()] : [...chips.values()].filter((it) => takers.has(it.name)), time);
  repaint = false;
  drawFlights(time);
  if (flights.length || flashes.length || (filling.size && !calm.matches)) schedule();
}

function paintBoxes(painted, time) {
  const buckets = painted.length ? [...state.map.buckets.values()] : [];
  const cells = new Map();
  for (const chip of painted) {
    const { clientWidth: width, clientHeight: height } = chip.canvas;
    const size = `${width}x${height}`;
    if (!cells.has(size)) cells.set(size, buckets.map((bucket) => view.place(bucket, width, height)));
    const places = cells.get(size);
    paint(chip.canvas, buckets.map((bucket, i) => ({ ...places[i], ...roleOf(bucket, chip) })), colours, time);
  }
}

function roleOf(bucket, chip) {
  const rank = chip.index < 0 ? -1 : bucket.holders.indexOf(chip.index);
  if (rank === 0) return { role: ROLE.primary };
  if (rank > 0) return { role: silent.has(state.map.members[bucket.holders[0]]) ? ROLE.pending : ROLE.backup };
  const move = filling.get(`${bucket.name}\t${chip.name}`);
  if (move) return { role: ROLE.filling, percent: move.percent };
  return { role: bucket.holders.length ? ROLE.none : ROLE.lost };
}

/** Returns the position of a bucket in a node's box, relative to the whole picture. */
function spot(bucket, name) {
  const canvas = chips.get(name)?.canvas;
  if (!canvas) return null;
  const frame = $("flights").getBoundingClientRect(), box = canvas.getBoundingClientRect();
  const { x, y, w, h: high } = view.place(bucket, canvas.clientWidth, canvas.clientHeight);
  const left = box.left - frame.left + x, top = box.top - frame.top + y;
  return { left, top, w, h: high, x: left + w / 2, y: top + high / 2 };
}

function drawFlights(time) {
  const canvas = $("flights"), ratio = devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
  if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  for (const move of filling.values()) drawMove(context, move, time);
  flights = flights.filter((it) => time < it.start + FLIGHT_MS || (flash(it.bucket, it.to, it.colour), false));
  for (const flight of flights) drawFlight(context, flight, (time - flight.start) / FLIGHT_MS);
  flashes = flashes.filter((it) => time < it.start + FLASH_MS);
  for (const it of flashes) drawFlash(context, it, (time - it.start) / FLASH_MS);
  for (const slot of new Set([kept, looked?.slot])) drawMark(context, state.map.buckets.get(slot));
}

function drawFlight(context, { bucket, from, to, colour }, t) {
  if (t < 0) return;
  const [a, b] = [spot(bucket, from), spot(bucket, to)];
  if (!a || !b) return;
  const eased = t < 0.5 ? 2 * t * t : 1 - (2 - 2 * t) ** 2 / 2;
  context.strokeStyle = context.fillStyle = colours[colour];
  context.lineWidth = 2;
  for (let i = 0; i < 10; i++) {
    const [p, q] = [eased - 0.3 + i * 0.03, eased - 0.27 + i * 0.03];
    if (p < 0) continue;
    context.globalAlpha = 0.06 * (i + 1);
    const [from, to] = [onArc(a, b, p), onArc(a, b, q)];
    context.beginPath();
    context.moveTo(from.x, from.y);
    context.lineTo(to.x, to.y);
    context.stroke();
  }
  context.globalAlpha = 0.95;
  const head = onArc(a, b, eased);
  context.beginPath();
  context.arc(head.x, head.y, 3.2, 0, 7);
  context.fill();
  context.globalAlpha = 1;
}

function drawMove(context, move, time) {
  const bucket = [...state.map.buckets.values()].find((it) => it.name === move.bucket);
  const [a, b] = bucket ? [spot(bucket, move.source), spot(bucket, move.taker)] : [];
  if (!a || !b) return;
  context.strokeStyle = context.fillStyle = colours.filling;
  context.globalAlpha = 0.4;
  context.setLineDash([4, 5]);
  context.beginPath();
  for (let i = 0; i <= 24; i++) {
    const p = onArc(a, b, i / 24);
    if (i) context.lineTo(p.x, p.y); else context.moveTo(p.x, p.y);
  }
  context.stroke();
  context.setLineDash([]);
  context.globalAlpha = 1;
  for (const shift of calm.matches ? [] : [0, 0.33, 0.66]) {
    const p = onArc(a, b, (time / 1400 + shift) % 1);
    context.beginPath();
    context.arc(p.x, p.y, 2.4, 0, 7);
    context.fill();
  }
}

function drawFlash(context, { bucket, on, colour }, t) {
  const at = spot(bucket, on);
  if (!at || t < 0) return;
  const grow = 7 * t;
  context.globalAlpha = 0.8 * (1 - t);
  context.strokeStyle = colours[colour];
  context.lineWidth = 2;
  context.strokeRect(at.left - grow, at.top - grow, at.w + 2 * grow, at.h + 2 * grow);
  context.globalAlpha = 1;
}

function drawMark(context, bucket) {
  if (!bucket) return;
  context.strokeStyle = colours.ink;
  context.lineWidth = 1.5;
  for (const chip of chips.values()) {
    const at = spot(bucket, chip.name);
    if (at) context.strokeRect(at.left - 1.5, at.top - 1.5, at.w + 3, at.h + 3);
  }
}

// ---- Inspecting one bucket: pointer and keyboard.

function bucketUnder(chip, event) {
  const box = chip.canvas.getBoundingClientRect();
  return view.at(state.map.buckets, event.clientX - box.left, event.clientY - box.top, chip.canvas.clientWidth);
}

const firstBucket = () => state.map?.buckets.get(0) ?? null;
const markedHere = () => state.map?.buckets.get(looked?.slot ?? kept) ?? null;

function look(chip, bucket, event) {
  if (looked !== bucket) dirty();
  looked = bucket;
  const tip = $("tip");
  tip.hidden = !bucket;
  if (!bucket) return;
  const lines = told(bucket);
  tip.replaceChildren(h("strong", { class: "mono" }, bucket.name), h("dl", {}, ...lines.flatMap(([what, is]) => [h("dt", {}, what), h("dd", {}, is)])));
  if (!event) text($("told"), `${bucket.name}: ${lines.map((line) => line.join(" ")).join("; ")}`);
  const at = spot(bucket, chip.name), frame = $("flights").getBoundingClientRect();
  const x = event?.clientX ?? frame.left + at.x, y = event?.clientY ?? frame.top + at.y;
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${y + 18 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 12 : y + 18}px`;
}

function told(bucket) {
  const name = (index) => state.map.members[index];
  const [primary, ...backups] = bucket.holders;
  const lines = [["slots", `${bucket.slot} to ${bucket.slot + bucket.slots - 1}`]];
  lines.push(["primary", primary === undefined ? "none: the bucket is lost" : name(primary)]);
  if (primary !== undefined) lines.push(["backup", backups.map(name).join(", ") || "none"]);
  for (const move of state.status?.moves ?? []) {
    if (move.bucket === bucket.name) lines.push([move.kind, `to ${move.taker}, ${move.percent} %`]);
  }
  return lines;
}

function keep(bucket) {
  kept = bucket && bucket.slot !== kept ? bucket.slot : null;
  document.dispatchEvent(new Event("bucketmarked"));
  dirty();
}

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function walk(chip, event) {
  if (event.key === "Enter" || event.key === " ") {
    keep(looked);
    return event.preventDefault();
  }
  const step = STEPS[event.key];
  if (!step) return;
  event.preventDefault();
  const from = looked ?? firstBucket();
  const { clientWidth: width, clientHeight: height } = chip.canvas;
  const { x, y, w, h: high } = view.place(from, width, height);
  const reach = (length) => length / 2 + 4;
  const next = view.at(state.map.buckets, x + w / 2 + step[0] * reach(w), y + high / 2 + step[1] * reach(high), width);
  const leaves = y + high / 2 + step[1] * reach(high) > height;
  if (next && !leaves) return look(chip, next);
  const names = [...$("chips").querySelectorAll("canvas[role]")];
  const other = names[names.indexOf(chip.canvas) + (step[0] + step[1])];
  if (other) {
    rove(other);
    other.focus();
  }
}

/** Makes one box reachable by Tab; arrow keys lead to the others. */
function rove(wanted) {
  const all = [...$("chips").querySelectorAll("canvas[role]")];
  const one = wanted ?? all.find((it) => it.tabIndex === 0) ?? all[0];
  for (const canvas of all) canvas.tabIndex = canvas === one ? 0 : -1;
}
