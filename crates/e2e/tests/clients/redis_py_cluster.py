"""A little story about a cluster of three, told through redis-py's RedisCluster."""
import sys

import redis
from redis.cluster import ClusterNode, RedisCluster

ports = [int(port) for port in sys.argv[1:]]
KEYS = 1000


def check(claim, held):
    if not held:
        sys.exit(f"redis-py: {claim}")


def whole(r):
    """Every key is counted, listed and scanned once: no node speaks for another's slots."""
    names = {f"key:{number}" for number in range(KEYS)}
    for name in names:
        r.set(name, name)
    check("values come back", all(r.get(name) == name for name in names))
    primaries = RedisCluster.PRIMARIES
    check("all three serve", len(r.get_primaries()) == 3)
    check("every key is counted once", r.dbsize(target_nodes=primaries) == KEYS)
    listed = r.keys("*", target_nodes=primaries)
    check("every key is listed once", sorted(listed) == sorted(names))
    scanned = list(r.scan_iter(count=50, target_nodes=primaries))
    check("every key is scanned", set(scanned) == names)


def together(r):
    check("several of one slot", r.mset({"{tag}a": "1", "{tag}b": "2"}) and r.mget("{tag}a", "{tag}b") == ["1", "2"])
    check("several of any slots", r.mget_nonatomic("key:1", "key:2", "nobody") == ["key:1", "key:2", None])
    pipe = r.pipeline()
    for number in range(100):
        pipe.get(f"key:{number}")
    check("a pipeline over all nodes", pipe.execute() == [f"key:{number}" for number in range(100)])
    node = r.get_node_from_key("key:1")
    try:
        r.get_redis_connection(node).mget("key:1", "key:2", "key:3", "key:4")
        check("keys of several slots are refused by a node", False)
    except redis.ResponseError as error:
        check("and the refusal says why", "same slot" in str(error))


def away(r):
    """A flush of all primaries leaves nothing behind, in backups neither."""
    r.flushall(target_nodes=RedisCluster.PRIMARIES)
    check("all is gone", r.dbsize(target_nodes=RedisCluster.PRIMARIES) == 0)
    check("and stays so", r.get("key:1") is None)


for port in ports:
    for protocol in (2, 3):
        for backups in (False, True):
            cluster = RedisCluster(
                startup_nodes=[ClusterNode("127.0.0.1", port)],
                protocol=protocol,
                read_from_replicas=backups,
                decode_responses=True,
            )
            whole(cluster)
            together(cluster)
            away(cluster)
            cluster.close()
print("redis-py: all told")
