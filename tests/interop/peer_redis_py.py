"""A peer that uses redis-py's Lock; README.md lists its commands."""

import json
import sys
from typing import Any

import redis
from redis.exceptions import LockError
from redis.lock import Lock

client = redis.Redis.from_url(sys.argv[1])
lock: Lock | None = None


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    global lock
    if asked["do"] == "try":
        lock = client.lock(asked["name"], timeout=asked["ttl_ms"] / 1e3)
        token = lock.local.token if lock.acquire(blocking=False) else None
        return {"owner": token and bytes(token).decode()}
    assert lock
    try:
        lock.release()
    except LockError:
        return {"released": False}
    return {"released": True}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
