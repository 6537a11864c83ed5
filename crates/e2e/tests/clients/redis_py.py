"""A little story told through redis-py, in both versions of the protocol."""
import sys
import threading

import redis

port = int(sys.argv[1])


def check(claim, held):
    if not held:
        sys.exit(f"redis-py: {claim}")


def values(r):
    check("a value comes back", r.set("greeting", "hello") and r.get("greeting") == "hello")
    check("NX spares what is there", r.set("greeting", "other", nx=True) is None)
    check("GET hands out the old value", r.set("greeting", "bye", get=True) == "hello")
    check("several at once", r.mset({"{m}a": 1, "{m}b": 2}) and r.mget("{m}a", "{m}b", "no") == ["1", "2", None])
    check("counting", r.incrby("count", 5) == 5 and r.decr("count") == 4)
    check("floats", r.incrbyfloat("float", "0.1") == 0.1)
    check("bits", r.setbit("bits", 7, 1) == 0 and r.bitcount("bits") == 1)
    check("expiry", r.expire("greeting", 1000) and 0 < r.ttl("greeting") <= 1000)
    check("no expiry", r.persist("greeting") and r.ttl("greeting") == -1)


def transactions(r):
    with r.pipeline() as pipe:
        pipe.watch("balance")
        pipe.multi()
        pipe.set("balance", 10).incr("balance").get("balance")
        check("a transaction", pipe.execute() == [True, 11, "11"])
    with r.pipeline() as pipe:
        pipe.watch("balance")
        r.set("balance", 0)
        pipe.multi()
        pipe.incr("balance")
        try:
            pipe.execute()
            check("a watched key that changed stops a transaction", False)
        except redis.WatchError:
            pass
    try:
        r.set("text", "abc")
        r.incr("text")
        check("an error is an error", False)
    except redis.ResponseError as error:
        check("its text", "not an integer" in str(error))


def counting_together(r):
    def count():
        mine = redis.Redis(port=port)
        for _ in range(100):
            mine.incr("together")

    threads = [threading.Thread(target=count) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    check("no count is lost", r.get("together") == "800")


def channels(r):
    listener = r.pubsub(ignore_subscribe_messages=True)
    listener.subscribe("news")
    listener.psubscribe("ne*")
    listener.get_message(timeout=2)
    listener.get_message(timeout=2)
    check("two receivers", r.publish("news", "hi") == 2)
    heard = sorted(listener.get_message(timeout=2)["type"] for _ in range(2))
    check("both hear it", heard == ["message", "pmessage"])
    listener.close()


def queue(r):
    consumers, elements = 8, 400
    popped = [[] for _ in range(consumers)]

    def consume(mine):
        own = redis.Redis(port=port, decode_responses=True, protocol=r.connection_pool.connection_kwargs["protocol"])
        while True:
            name, element = own.blpop(["queue:high", "queue:low"], timeout=0)
            if element == "end":
                return
            mine.append(element)

    threads = [threading.Thread(target=consume, args=(mine,)) for mine in popped]
    [thread.start() for thread in threads]
    for number in range(elements):
        r.rpush("queue:high" if number % 3 == 0 else "queue:low", number)
    for _ in threads:
        r.rpush("queue:low", "end")
    [thread.join() for thread in threads]
    every = sorted(int(element) for mine in popped for element in mine)
    check("each element is popped once", every == list(range(elements)))
    check("a wait ends", r.blpop("queue:low", timeout=0.05) is None)
    check("a member waits", r.zadd("board", {"a": 1.5}) and list(r.bzpopmin("board")) == ["board", "a", 1.5])
    check("an element moves", r.lpush("from", "x") and r.blmove("from", "to", 1) == "x")


def keys(r):
    with r.pipeline(transaction=False) as pipe:
        for number in range(1000):
            pipe.set(f"many:{number}", number)
        check("a pipeline", all(pipe.execute()))
    check("SCAN finds all", len(set(r.scan_iter("many:*", count=100))) == 1000)
    check("DUMP and RESTORE", r.restore("copy", 0, raw.dump("many:7"), replace=True) and r.get("copy") == "7")
    check("INFO is read", "redis_version" in r.info())
    check("a name", r.client_setname("story") and r.client_getname() == "story")


for protocol in (2, 3):
    r = redis.Redis(port=port, decode_responses=True, protocol=protocol)
    raw = redis.Redis(port=port)
    r.flushall()
    for chapter in (values, transactions, counting_together, channels, queue, keys):
        chapter(r)
print("redis-py: all told")
