# A load from redis-py's RedisCluster at a fixed rate. Arguments: a node's port, keys, requests a second.
# It goes on until its input ends, says "ready" when it has begun, and ends with one line of JSON: requests
# as [due, took] and reads of the whole map as [at], all in microseconds, by the clock of 1970.
import json
import random
import sys
import threading
import time

from redis.cluster import ClusterNode, NodesManager, RedisCluster

THREADS = 4
VALUE = "v" * 100
port, keys, rate = (int(word) for word in sys.argv[1:4])
refreshes, stop = [], threading.Event()
initialize = NodesManager.initialize


def counted(self, *args, **named):
    refreshes.append(int(time.time() * 1e6))
    return initialize(self, *args, **named)


NodesManager.initialize = counted
client = RedisCluster(startup_nodes=[ClusterNode("127.0.0.1", port)])
samples = [[] for _ in range(THREADS)]


def work(number):
    every, due, chance = THREADS / rate, time.time(), random.Random(number)
    while not stop.is_set():
        due += every
        time.sleep(max(0, due - time.time()))
        key = f"key:{chance.randrange(keys)}"
        if chance.randrange(2):
            client.get(key)
        else:
            client.set(key, VALUE)
        samples[number].append((int(due * 1e6), int((time.time() - due) * 1e6)))


threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(THREADS)]
[thread.start() for thread in threads]
print("ready", flush=True)
sys.stdin.read()
stop.set()
[thread.join(5) for thread in threads]
print(json.dumps({"samples": sum(samples, []), "refreshes": refreshes}), flush=True)
