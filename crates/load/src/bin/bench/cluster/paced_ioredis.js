// A load from ioredis' Cluster at a fixed rate; arguments and output as in paced_redis_py.py.
const Redis = require("ioredis");

const VALUE = "v".repeat(100);
const [port, keys, rate] = process.argv.slice(2).map(Number);
const cluster = new Redis.Cluster([{ host: "127.0.0.1", port }]);
const [samples, refreshes] = [[], []];
const micros = () => Math.round((performance.timeOrigin + performance.now()) * 1e3);
const refresh = cluster.refreshSlotsCache;
cluster.refreshSlotsCache = function (...args) {
  refreshes.push(micros());
  return refresh.apply(this, args);
};

let due = 0;
const timer = () => {
  for (; due <= micros(); due += 1e6 / rate) {
    const [begun, key] = [due, `key:${Math.floor(Math.random() * keys)}`];
    const asked = Math.random() < 0.5 ? cluster.get(key) : cluster.set(key, VALUE);
    asked.then(() => samples.push([Math.round(begun), micros() - Math.round(begun)]));
  }
};

cluster.once("ready", () => {
  due = micros();
  const ticking = setInterval(timer, 1);
  console.log("ready");
  process.stdin.resume();
  process.stdin.on("end", () => {
    clearInterval(ticking);
    setTimeout(() => {
      console.log(JSON.stringify({ samples, refreshes }));
      process.exit(0);
    }, 200);
  });
});
