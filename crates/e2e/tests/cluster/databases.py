"""A broker, a result store and sessions in databases of their own, as Celery, RQ and django-redis use them."""
import json
import sys
import time

import redis

port = int(sys.argv[1])
in_cluster = len(sys.argv) > 2
BROKER, RESULTS, SESSIONS = 3, 4, 15


def check(claim, held):
    if not held:
        sys.exit(f"databases: {claim}")


def connect(db):
    return redis.Redis(port=port, db=db, decode_responses=True)


def url(db):
    return redis.Redis.from_url(f"redis://127.0.0.1:{port}/{db}", decode_responses=True)


def celery():
    """Tasks are pushed to a list, taken by a worker, and answered in another database with an expiry."""
    broker, results = url(BROKER), url(RESULTS)
    broker.sadd("_kombu.binding.celery", "celery\x06\x16\x06\x16celery")
    for number in range(50):
        broker.lpush("celery", json.dumps({"id": f"task-{number}", "args": [number]}))
    check("tasks wait in their own database", broker.llen("celery") == 50 and results.llen("celery") == 0)
    while (body := broker.rpop("celery")) is not None:
        task = json.loads(body)
        with broker.pipeline(transaction=True) as pipe:
            pipe.zadd("unacked_index", {task["id"]: time.time()}).hset("unacked", task["id"], body)
            if not in_cluster:
                pipe.execute()
        results.setex(f"celery-task-meta-{task['id']}", 3600, json.dumps({"result": task["args"][0] ** 2}))
    check("every result is there", json.loads(results.get("celery-task-meta-task-7"))["result"] == 49)
    check("and expires", 0 < results.ttl("celery-task-meta-task-7") <= 3600)
    check("none of them is in the broker's database", broker.get("celery-task-meta-task-7") is None)


def rq():
    """A job is a hash, its queue a list; a worker watches the queue while it takes a job."""
    r = connect(BROKER)
    for number in range(10):
        r.hset(f"rq:job:{{q}}{number}", mapping={"data": number, "status": "queued"})
        r.rpush("rq:queue:{q}", number)
    other = connect(BROKER)
    elsewhere = connect(RESULTS)
    with r.pipeline() as pipe:
        pipe.watch("rq:queue:{q}")
        elsewhere.rpush("rq:queue:{q}", "another database")
        pipe.multi()
        pipe.lpop("rq:queue:{q}")
        check("a change in another database is none", pipe.execute() == ["0"])
    with r.pipeline() as pipe:
        pipe.watch("rq:queue:{q}")
        other.rpush("rq:queue:{q}", "late")
        pipe.multi()
        pipe.lpop("rq:queue:{q}")
        try:
            pipe.execute()
            check("a change in this database stops the transaction", False)
        except redis.WatchError:
            pass
    check("nothing was taken", r.lrange("rq:queue:{q}", 0, -1) == [str(n) for n in range(1, 10)] + ["late"])
    elsewhere.delete("rq:queue:{q}")


def sessions():
    r, zero = url(SESSIONS), url(0)
    with r.pipeline(transaction=False) as pipe:
        for number in range(200):
            pipe.set(f"session:{number}", number, ex=600)
        pipe.execute()
    check("all sessions come back", all(r.get(f"session:{n}") == str(n) for n in range(200)))
    check("none is in database 0", zero.get("session:1") is None)
    if not in_cluster:
        check("they are scanned", len(set(r.scan_iter("session:*"))) == 200)
        check("counted", r.dbsize() == 200 and r.info("keyspace")["db15"]["keys"] == 200)
        check("and the client is listed with its database", any(c["db"] == "15" for c in r.client_list()))
        check("a test suite flushes its own", r.flushdb() and r.dbsize() == 0 and connect(BROKER).dbsize() > 0)


def moving():
    broker, results = connect(BROKER), connect(RESULTS)
    broker.set("{m}job", "x")
    check("a key moves", broker.move("{m}job", RESULTS) and results.get("{m}job") == "x")
    check("and is gone here", broker.get("{m}job") is None and not broker.move("{m}job", RESULTS))
    check("a copy stays", results.copy("{m}job", "{m}copy", destination_db=BROKER))
    check("in the other database", broker.get("{m}copy") == "x" and results.get("{m}copy") is None)


def heard():
    """Events name the database."""
    r = connect(SESSIONS)
    r.config_set("notify-keyspace-events", "KEA")
    listener = connect(0).pubsub()
    listener.psubscribe("__keyspace@15__:*", "__keyevent@0__:*")
    while listener.get_message(timeout=5)["type"] != "psubscribe":
        pass
    listener.get_message(timeout=5)
    r.set("told", 1)
    message = listener.get_message(timeout=5)
    check("the event is of database 15", message["channel"] == "__keyspace@15__:told" and message["data"] == "set")


celery()
rq()
sessions()
moving()
if not in_cluster:
    heard()
print("databases: all told")
