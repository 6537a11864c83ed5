// A little story told through ioredis.
const Redis = require("ioredis");

const port = Number(process.argv[2]);

function check(claim, held) {
  if (!held) {
    console.error(`ioredis: ${claim}`);
    process.exit(1);
  }
}

async function values(redis) {
  check("a value comes back", (await redis.set("greeting", "hello")) === "OK");
  check("a value is the same", (await redis.get("greeting")) === "hello");
  check("bytes too", (await redis.getBuffer("greeting")).equals(Buffer.from("hello")));
  check("several at once", (await redis.mget("greeting", "none")).join() === "hello,");
  check("counting", (await redis.incrby("count", 41)) === 41 && (await redis.incr("count")) === 42);
  check("expiry", (await redis.set("short", "x", "EX", 100, "NX")) === "OK");
  const left = await redis.ttl("short");
  check("time is left", left > 0 && left <= 100);
}

async function together(redis) {
  const answers = await redis.pipeline().set("a", 1).incr("a").get("a").exec();
  check("a pipeline", JSON.stringify(answers) === '[[null,"OK"],[null,2],[null,"2"]]');
  const done = await redis.multi().set("b", 1).incr("b").exec();
  check("a transaction", JSON.stringify(done) === '[[null,"OK"],[null,2]]');
  let failed = null;
  await redis.incr("greeting").catch((error) => (failed = error.message));
  check("an error is an error", failed === "ERR value is not an integer or out of range");
}

async function channels(redis) {
  const listener = redis.duplicate();
  // ioredis writes a SUBSCRIBE at once when the connection stands, and its own INFO after the replies to CLIENT
  // SETINFO: any server refuses an INFO behind a SUBSCRIBE.
  await new Promise((resolve) => listener.once("ready", resolve));
  await redis.config("SET", "notify-keyspace-events", "KEA");
  await listener.subscribe("news");
  await listener.psubscribe("__keyevent@0__:*");
  const heard = new Promise((resolve) => listener.once("message", (_, text) => resolve(text)));
  const event = new Promise((resolve) => listener.once("pmessage", (_, channel, key) => resolve(channel + key)));
  await redis.publish("news", "hi");
  check("a message is heard", (await heard) === "hi");
  await redis.set("watched", 1);
  check("so is an event", (await event) === "__keyevent@0__:setwatched");
  listener.disconnect();
}

async function keys(redis) {
  await Promise.all(Array.from({ length: 1000 }, (_, n) => redis.set(`many:${n}`, n)));
  const found = new Set();
  for await (const batch of redis.scanStream({ match: "many:*", count: 100 })) {
    batch.forEach((key) => found.add(key));
  }
  check("a stream of keys finds all", found.size === 1000);
}

async function main() {
  const redis = new Redis(port);
  await redis.flushall();
  for (const chapter of [values, together, channels, keys]) {
    await chapter(redis);
  }
  await redis.quit();
  console.log("ioredis: all told");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
