"""Python clients that read from replicas. The test names a step on stdin and reads the result from stdout.

Arguments: the client's name, and the ports of some nodes.
"""
import asyncio
import os
import signal
import sys

KEYS = 600
STEP_SECONDS = 60
NAMES = [f"key:{number}" for number in range(KEYS)]


class RedisPy:
    async def open(self, ports):
        from redis.cluster import ClusterNode, RedisCluster

        nodes = [ClusterNode("127.0.0.1", port) for port in ports]
        self.client = RedisCluster(startup_nodes=nodes, read_from_replicas=True, decode_responses=True)
        self.all = RedisCluster.PRIMARIES

    async def set(self, name):
        self.client.set(name, name)

    async def get(self, name):
        return self.client.get(name)

    async def keys(self):
        return self.client.keys("*", target_nodes=self.all)

    async def size(self):
        return self.client.dbsize(target_nodes=self.all)

    async def scan(self):
        return list(self.client.scan_iter(count=50))

    async def flush(self):
        self.client.flushall(target_nodes=self.all)


class Coredis:
    async def open(self, ports):
        import coredis

        nodes = [coredis.connection.TCPLocation("127.0.0.1", port) for port in ports]
        client = coredis.RedisCluster(startup_nodes=nodes, read_from_replicas=True, decode_responses=True)
        self.client = await client.__aenter__()

    async def set(self, name):
        await self.client.set(name, name)

    async def get(self, name):
        return await self.client.get(name)

    async def keys(self):
        return list(await self.client.keys("*"))

    async def size(self):
        # It does not send DBSIZE to all primaries by itself.
        total = 0
        for primary in self.client.primaries:
            async with primary:
                total += await primary.dbsize()
        return total

    async def scan(self):
        return [name async for name in self.client.scan_iter(count=50)]

    async def flush(self):
        await self.client.flushall()


class Glide:
    async def open(self, ports):
        from glide_sync import GlideClusterClient, GlideClusterClientConfiguration, NodeAddress, ReadFrom
        from glide_sync import Logger, LogLevel

        Logger.set_logger_config(LogLevel.OFF)  # It logs redirections to stdout.
        nodes = [NodeAddress("127.0.0.1", port) for port in ports]
        config = GlideClusterClientConfiguration(
            nodes, read_from=ReadFrom.PREFER_REPLICA, request_timeout=5000
        )
        self.client = GlideClusterClient.create(config)

    async def set(self, name):
        self.client.set(name, name)

    async def get(self, name):
        return (self.client.get(name) or b"").decode()

    async def keys(self):
        return [name.decode() for name in self.client.custom_command(["KEYS", "*"])]

    async def size(self):
        return self.client.dbsize()

    async def scan(self):
        from glide_sync import ClusterScanCursor

        cursor, names = ClusterScanCursor(), []
        while not cursor.is_finished():
            cursor, found = self.client.scan(cursor, count=50)
            names += [name.decode() for name in found]
        return names

    async def flush(self):
        self.client.flushall()


def check(claim, held):
    if not held:
        sys.exit(f"{sys.argv[1]}: {claim}")


async def fill(client):
    for name in NAMES:
        await client.set(name)


async def read(client):
    for name in NAMES:
        value = await client.get(name)
        check(f"{name} is read as {value}", value == name)


async def whole(client):
    listed = await client.keys()
    check(f"every key is listed once: {len(listed)}", sorted(listed) == sorted(NAMES))
    size = await client.size()
    check(f"every key is counted once: {size}", size == KEYS)
    scanned = await client.scan()
    check(f"every key is scanned: {len(set(scanned))}", set(scanned) == set(NAMES))


async def reopen(client):
    await client.open([int(port) for port in sys.argv[2:]])


async def flush(client):
    await client.flush()
    size = await client.size()
    check(f"nothing is left: {size}", size == 0)
    check("a flushed key is gone", not await client.get(NAMES[0]))


async def main():
    client = {"redis-py": RedisPy, "coredis": Coredis, "valkey-glide": Glide}[sys.argv[1]]()
    await reopen(client)
    steps = {"fill": fill, "read": read, "whole": whole, "flush": flush, "reopen": reopen}
    for line in sys.stdin:
        signal.alarm(STEP_SECONDS)  # A client that hangs is ended by the signal.
        await steps[line.strip()](client)
        signal.alarm(0)
        print(f"done: {line.strip()}", flush=True)
    # The clients' own threads and connections end with the process.
    os._exit(0)


asyncio.run(main())
