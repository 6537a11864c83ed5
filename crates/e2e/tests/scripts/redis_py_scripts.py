"""Scripts through redis-py: a registered script, a lock, a pipeline of scripts."""
import sys

import redis

port = int(sys.argv[1])


def check(claim, held):
    if not held:
        sys.exit(f"redis-py: {claim}")


r = redis.Redis(port=port, decode_responses=True)

add = r.register_script("return redis.call('incrby', KEYS[1], ARGV[1])")
check("a registered script is loaded when it is missing", add(keys=["n"], args=[5]) == 5)
check("and then run by its hash", add(keys=["n"], args=[6]) == 11)
with r.pipeline() as pipe:
    add(keys=["n"], args=[1], client=pipe)
    pipe.get("n")
    check("in a pipeline too", pipe.execute() == [12, "12"])

lock = r.lock("job", timeout=10)
check("a lock is taken", lock.acquire(blocking=False))
check("once", not r.lock("job", timeout=10).acquire(blocking=False))
check("its time is extended", lock.extend(20))
check("by its owner's script", 10 < r.ttl("job") <= 30)
lock.reacquire()
lock.release()
check("and it is released", r.get("job") is None)
try:
    lock.release()
    check("a lock that is not held cannot be released", False)
except redis.exceptions.LockError:
    pass

print("redis-py: scripts told")
