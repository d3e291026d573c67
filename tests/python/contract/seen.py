"""Seen values: the results of a step, in the form of the cases."""

import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from locktender import LockError


def left(seconds: float | None) -> Any:
    return "forever" if seconds == math.inf else None if seconds is None else seconds * 1e3


def look(held: Any) -> dict[str, Any]:
    try:
        check = held.check()
    except LockError as error:
        check = error.code
    numbers = {name: getattr(held, name) for name in ("number", "max_attempts", "is_last", "term") if hasattr(held, name)}
    names = {name: getattr(held, name) for name in ("name", "fence") if hasattr(held, name)}
    if hasattr(held, "names"):
        names = {"names": list(held.names), "fences": [held.fences[name] for name in held.names]}
    return {
        **numbers,
        **names,
        "owner": held.owner,
        "remaining_ms": held.remaining() * 1e3,
        "valid": held.is_valid(),
        "check": check,
    }


def show_grant(grant: Any) -> dict[str, Any]:
    seen = {name: getattr(grant, name) for name in ("name", "owner", "fence", "state", "is_shared")}
    lasted_ms = grant.ended and (grant.ended - grant.began).total_seconds() * 1e3
    return {**seen, "pid": grant.fields and grant.fields.pid, "lasted_ms": lasted_ms}


def show_hold(hold: Any) -> dict[str, Any]:
    seen = {name: getattr(hold, name) for name in ("name", "kind", "owner", "fence")}
    return {**seen, "held_for_ms": hold.held_for * 1e3, "remaining_ms": hold.remaining * 1e3}


def show(info: Any) -> dict[str, Any]:
    if info is None:
        return {"free": True}
    fields = info.fields and {name: getattr(info.fields, name) for name in ("app", "host", "pid", "at", "id")}
    if fields:
        fields["at"] = fields["at"].isoformat()
    return {
        "free": False,
        "name": info.name,
        "owner": info.owner,
        "fields": fields,
        "remaining_ms": left(info.remaining),
        "fence": info.fence,
        "waiters": info.waiters,
        "queue": info.queue,
        "holder_count": info.holder_count,
        "holders": info.holders,
        "available": info.available,
    }


def outcome(outcome: Any) -> dict[str, Any]:
    return {name: getattr(outcome, name) for name in ("ran", "reason", "result", "attempts", "last_error")}


def status(status: Any, start: datetime) -> dict[str, Any]:
    seen = {name: getattr(status, name) for name in ("state", "attempts", "max_attempts", "last_owner", "last_error", "result")}
    for name in ("began_ago", "remaining", "retry_in"):
        seen[f"{name}_ms"] = left(getattr(status, name))
    for name in ("scheduled_time", "last_done"):
        at = getattr(status, name)
        seen[f"{name}_ms"] = at and (at - start) / timedelta(milliseconds=1)
    return seen


def observed(seen: Any) -> dict[str, Any]:
    leader = seen.leader and {name: getattr(seen.leader, name) for name in ("owner", "term", "since")}
    if leader:
        leader["since"] = leader["since"].isoformat()
        leader["remaining_ms"] = left(seen.leader.remaining)
    return {"leader": leader, "unknown": seen.unknown}


def ended(release: Any) -> dict[str, Any]:
    return {"outcome": release.outcome, "next_owner": release.next_owner, "next_fence": release.next_fence, "overrun_ms": release.overrun * 1e3, "kept_ms": release.kept * 1e3}


def describe(error: LockError) -> dict[str, Any]:
    # The class is the code in another spelling.
    assert type(error).__name__ == error.code.title().replace("_", "") + "Error"
    seen = {"error": error.code, "message": str(error), "lock_name": error.lock_name}
    for name in ("holder", "rank", "reason", "next_owner", "next_fence", "result", "attempts", "last_error"):
        seen[name] = getattr(error, name, None)
    seen["holder_remaining_ms"] = left(getattr(error, "remaining", None))
    seen["overrun_ms"] = getattr(error, "overrun", 0.0) * 1e3
    servers = getattr(error, "servers", [])
    seen["servers"] = [{"server": each.server, "kind": each.kind, "message": each.message} for each in servers]
    return seen


def counted(metrics: Any, keys: Iterable[str], labels: dict[str, str]) -> dict[str, float]:
    """What metrics say: a key is a name, and labels of its own."""
    def value(key: str) -> float:
        name, *own = key.split(" ")
        return metrics.value(f"locktender_{name}", **labels, **dict(label.split("=") for label in own))

    return {key: value(key) for key in keys}
