// A little story about a cluster of three, told through ioredis.
const Redis = require("ioredis");

const port = Number(process.argv[2]);
const KEYS = 1000;

function check(claim, held) {
  if (!held) {
    console.error(`ioredis: ${claim}`);
    process.exit(1);
  }
}

async function whole(cluster) {
  const names = Array.from({ length: KEYS }, (_, number) => `key:${number}`);
  await Promise.all(names.map((name) => cluster.set(name, name)));
  const values = await Promise.all(names.map((name) => cluster.get(name)));
  check("values come back", values.every((value, number) => value === names[number]));
  const masters = cluster.nodes("master");
  check("all three serve", masters.length === 3);
  const listed = (await Promise.all(masters.map((node) => node.keys("*")))).flat();
  check("every key is listed once", listed.sort().join() === names.sort().join());
  const sizes = await Promise.all(masters.map((node) => node.dbsize()));
  check("every key is counted once", sizes.reduce((sum, size) => sum + size) === KEYS);
}

async function together(cluster) {
  await cluster.mset("{tag}a", 1, "{tag}b", 2);
  check("several of one slot", (await cluster.mget("{tag}a", "{tag}b")).join() === "1,2");
  const done = await cluster.multi().set("{tag}c", 1).incr("{tag}c").exec();
  check("a transaction", JSON.stringify(done) === '[[null,"OK"],[null,2]]');
  const answers = await cluster.pipeline().set("{tag}d", 1).incr("{tag}d").exec();
  check("a pipeline", JSON.stringify(answers) === '[[null,"OK"],[null,2]]');
}

(async () => {
  const cluster = new Redis.Cluster([{ host: "127.0.0.1", port }]);
  await whole(cluster);
  await together(cluster);
  cluster.disconnect();
  console.log("ioredis: all told");
})().catch((error) => {
  console.error(`ioredis: ${error.stack}`);
  process.exit(1);
});
