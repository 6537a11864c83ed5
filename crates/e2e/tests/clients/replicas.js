// JavaScript clients that read from replicas. The test names a step on stdin and reads the result from stdout.
// Arguments: the client's name, and the ports of some nodes.
const [name, ...ports] = process.argv.slice(2);
const KEYS = 600;
const STEP_MILLIS = 60_000;
const NAMES = Array.from({ length: KEYS }, (_, number) => `key:${number}`);

function fail(claim) {
  console.error(`${name}: ${claim}`);
  process.exit(1);
}

function check(claim, held) {
  if (!held) fail(claim);
}

async function ioredis() {
  const Redis = require("ioredis");
  const nodes = ports.map((port) => ({ host: "127.0.0.1", port: Number(port) }));
  const cluster = new Redis.Cluster(nodes, { scaleReads: "slave" });
  cluster.on("error", () => {}); // A node that has died.
  const masters = () => cluster.nodes("master");
  const scan = async (node) => {
    const names = [];
    let cursor = "0";
    do {
      const [next, found] = await node.scan(cursor, "COUNT", 50);
      names.push(...found);
      cursor = next;
    } while (cursor !== "0");
    return names;
  };
  return {
    set: (key) => cluster.set(key, key),
    get: (key) => cluster.get(key),
    keys: () => Promise.all(masters().map((node) => node.keys("*"))),
    sizes: () => Promise.all(masters().map((node) => node.dbsize())),
    scan: () => Promise.all(masters().map(scan)),
    flush: () => Promise.all(masters().map((node) => node.flushall())),
  };
}

async function nodeRedis() {
  const { createCluster } = require("redis");
  const rootNodes = ports.map((port) => ({ url: `redis://127.0.0.1:${port}` }));
  let cluster;
  const open = async () => {
    cluster = createCluster({ rootNodes, useReplicas: true });
    cluster.on("error", () => {}); // A node that has died.
    await cluster.connect();
  };
  await open();
  const masters = () => Promise.all(cluster.masters.map((master) => cluster.nodeClient(master)));
  const each = async (work) => Promise.all((await masters()).map(work));
  const scan = async (node) => {
    const names = [];
    for await (const found of node.scanIterator({ COUNT: 50 })) names.push(...found);
    return names;
  };
  return {
    set: (key) => cluster.set(key, key),
    get: (key) => cluster.get(key),
    keys: () => each((node) => node.keys("*")),
    sizes: () => each((node) => node.dbSize()),
    scan: () => each(scan),
    flush: () => each((node) => node.flushAll()),
    reopen: () => {
      cluster.destroy();
      return open();
    },
  };
}

async function size(client) {
  return (await client.sizes()).reduce((sum, size) => sum + size, 0);
}

const steps = {
  reopen: (client) => client.reopen(),
  async fill(client) {
    for (const key of NAMES) await client.set(key);
  },
  async read(client) {
    for (const key of NAMES) {
      const value = await client.get(key);
      check(`${key} is read as ${value}`, value === key);
    }
  },
  async whole(client) {
    const listed = (await client.keys()).flat();
    check(`every key is listed once: ${listed.length}`, listed.sort().join() === [...NAMES].sort().join());
    const count = await size(client);
    check(`every key is counted once: ${count}`, count === KEYS);
    const scanned = new Set((await client.scan()).flat());
    check(`every key is scanned: ${scanned.size}`, NAMES.every((key) => scanned.has(key)));
  },
  async flush(client) {
    await client.flush();
    check("nothing is left", (await size(client)) === 0);
    check("a flushed key is gone", (await client.get(NAMES[0])) === null);
  },
};

(async () => {
  const client = await { ioredis, "node-redis": nodeRedis }[name]();
  const lines = require("readline").createInterface({ input: process.stdin });
  for await (const line of lines) {
    const hung = setTimeout(() => fail(`${line} hangs`), STEP_MILLIS);
    await steps[line](client);
    clearTimeout(hung);
    console.log(`done: ${line}`);
  }
  process.exit(0);
})().catch((error) => fail(error.stack));
