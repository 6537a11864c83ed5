# A steady load from redis-py's RedisCluster that remembers what was acknowledged. Its arguments are the
# ports of some nodes. It goes on until its input ends, says "ready" when it has begun, and ends with one
# line of JSON: writes, lost, stale, errors.
import json
import random
import sys
import threading

from redis.cluster import ClusterNode, RedisCluster

THREADS = 4
KEYS = 200


def connect():
    nodes = [ClusterNode("127.0.0.1", int(port)) for port in sys.argv[1:]]
    return RedisCluster(startup_nodes=nodes, socket_timeout=2)


stop = threading.Event()
begun = threading.Barrier(THREADS + 1)
acknowledged = [{} for _ in range(THREADS)]
writes, stale, errors = [], [], []


def work(number):
    client, known, round = connect(), acknowledged[number], 0
    begun.wait()
    while not stop.is_set():
        round += 1
        key = f"py:{number}:{round % KEYS}"
        try:
            client.set(key, round)
            known[key] = round
            writes.append(1)
            other = f"py:{number}:{random.randrange(KEYS)}"
            if other in known:
                found = client.get(other)
                if found is None or int(found) < known[other]:
                    stale.append(f"{other}: {known[other]} acknowledged, {found} read")
        except Exception as error:
            errors.append(f"{key}: {error!r}")


threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
for thread in threads:
    thread.start()
begun.wait()
print("ready", flush=True)
sys.stdin.read()
stop.set()
for thread in threads:
    thread.join()
client, lost = connect(), []
for key, value in [pair for known in acknowledged for pair in known.items()]:
    found = client.get(key)
    if found is None or int(found) < value:
        lost.append(f"{key}: {value} acknowledged, {found} there")
shown = {"writes": len(writes), "lost": lost[:5], "stale": stale[:5], "errors": errors[:5]}
print(json.dumps(shown), flush=True)
