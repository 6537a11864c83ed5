// The cluster as this page knows it, kept up to date by the node's events (/api/events).

import { ask } from "./dom.js";

export const state = {
  /** True if the node is connected. */
  live: false,
  hello: null,
  /** { epoch, members: [name], buckets: Map(first slot -> bucket) } */
  map: null,
  /** The status document without its buckets. */
  status: null,
  node: null,
  /** The last hour in columns. */
  hour: null,
};

const listeners = new Map();

/** Calls `run` whenever one of these changes: live, hello, map, buckets, status, node, hour. */
export function on(names, run) {
  for (const name of names.split(" ")) {
    if (!listeners.has(name)) listeners.set(name, []);
    listeners.get(name).push(run);
  }
}

function tell(name, detail) {
  for (const run of listeners.get(name) ?? []) run(detail);
}

const SLOTS = 16_384;
const HOUR_MS = 3_600_000;

/** The hashmask of a bucket, from its first slot: a hash is a slot with its 14 bits reversed. */
function hashmask(slot, mask) {
  let hash = 0;
  for (let bit = 0; bit < 14; bit++) hash |= ((slot >> bit) & 1) << (13 - bit);
  const hex = (n) => n.toString(16).toUpperCase().padStart(4, "0");
  return `${hex(mask)}/${hex(hash & mask)}`;
}

function bucketOf([slot, mask, ...holders]) {
  return { slot, mask, holders, slots: SLOTS / (mask + 1), name: hashmask(slot, mask) };
}

function onMap(told) {
  const before = state.map;
  const buckets = new Map(told.buckets.map((it) => [it[0], bucketOf(it)]));
  state.map = { epoch: told.epoch, generation: told.generation, members: told.members, buckets };
  tell("map", before);
}

function onBuckets(told) {
  if (!state.map) return;
  const changes = [];
  for (const it of told.buckets) {
    const after = bucketOf(it);
    changes.push({ before: state.map.buckets.get(after.slot), after });
    state.map.buckets.set(after.slot, after);
  }
  state.map.epoch = told.epoch;
  tell("buckets", changes);
}

function onSample(told) {
  if (!state.hour) return;
  const last = state.hour.at.at(-1) ?? 0;
  if (!(told.at[0] > last)) return;
  for (const [name, column] of Object.entries(state.hour)) column.push(...(told[name] ?? []));
  while (state.hour.at[0] < told.at[0] - HOUR_MS) {
    for (const column of Object.values(state.hour)) column.shift();
  }
  tell("hour");
}

function set(name, value) {
  state[name] = value;
  tell(name);
}

let source = null;
let awayTimer = 0;
let againTimer = 0;

function isLive() {
  clearTimeout(awayTimer);
  awayTimer = 0;
  if (!state.live) set("live", true);
}

/** Reports the node as away after a delay: a stream ends by itself now and then. */
function mayBeAway() {
  awayTimer ||= setTimeout(() => set("live", false), 2500);
}

function open() {
  close();
  source = new EventSource("/api/events");
  const handlers = { map: onMap, buckets: onBuckets, sample: onSample };
  for (const name of ["hello", "map", "buckets", "status", "node", "sample"]) {
    source.addEventListener(name, (event) => {
      isLive();
      const told = JSON.parse(event.data);
      if (handlers[name]) handlers[name](told);
      else set(name, told);
    });
  }
  source.addEventListener("error", () => {
    mayBeAway();
    // Refused, not interrupted: the browser does not retry by itself.
    if (source?.readyState === EventSource.CLOSED) {
      clearTimeout(againTimer);
      againTimer = setTimeout(open, 3000);
    }
  });
}

function close() {
  source?.close();
  source = null;
}

async function loadHour() {
  const hour = await ask("/api/history");
  if (hour) set("hour", hour);
}

export function start() {
  const look = () => {
    if (document.hidden) return close();
    open();
    loadHour();
  };
  document.addEventListener("visibilitychange", look);
  look();
}
