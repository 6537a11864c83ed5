// Human-readable numbers.

const whole = new Intl.NumberFormat("en");

const digits = (n) => String(n < 9.95 ? Math.round(n * 10) / 10 : Math.round(n));

export const count = (n) => whole.format(Math.round(n));

/** Formats a count: 950, 12.3 k, 4.5 M. */
export function short(n) {
  if (n < 10_000) return count(n);
  const units = ["k", "M", "G", "T"];
  let unit = -1;
  while (n >= 1000 && unit < units.length - 1) { n /= 1000; unit++; }
  return `${digits(n)} ${units[unit]}`;
}

export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) { n /= 1024; unit++; }
  return `${digits(n)} ${units[unit]}`;
}

/** Formats a short duration, from nanoseconds. */
export function nanos(n) {
  if (n < 1_000) return `${Math.round(n)} ns`;
  if (n < 1_000_000) return `${digits(n / 1_000)} µs`;
  if (n < 1_000_000_000) return `${digits(n / 1_000_000)} ms`;
  return `${digits(n / 1_000_000_000)} s`;
}

/** Formats a longer duration, from milliseconds. */
export function span(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = Math.floor(ms / 1000), m = Math.floor(s / 60), hours = Math.floor(m / 60), days = Math.floor(hours / 24);
  if (days) return `${days} d ${hours % 24} h`;
  if (hours) return `${hours} h ${m % 60} min`;
  if (m) return `${m} min ${s % 60} s`;
  return `${s} s`;
}

/** Formats the time since `at`, roughly. */
export function ago(at, now = Date.now()) {
  const s = Math.max(0, Math.round((now - at) / 1000));
  if (s < 2) return "now";
  if (s < 60) return `${s} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86_400)} d ago`;
}

export const many = (n, one, more = `${one}s`) => `${count(n)} ${n === 1 ? one : more}`;
