"""Sample events: points as a client writes them for InfluxDB, each event once for each category of three applications."""

from typing import Any

from .sample_metrics import CLIENTS, CATEGORIES, SERVERS

# What each event of a lock has besides lock.
EVENTS: dict[str, dict[str, Any]] = {
    "round": {"owner": "a"},
    "busy": {"holder": "b", "took": 0.5},
    "not_acquired": {"holder": "b", "took": 0.001},
    "queued": {"rank": 3},
    "notified": {},
    "acquired": {"owner": "a", "fence": 7, "took": 0.5, "notified_ago": 0.002},
    "timed_out": {"holder": "b", "rank": 2, "took": 5.0},
    "cancelled": {"took": 0.5, "message": "the client was closed"},
    "acquire_failed": {"took": 0.5, "message": "no server"},
    "renewed": {"owner": "a", "fence": 7, "took": 0.001},
    "extended": {"owner": "a", "fence": 7, "took": 0.001},
    "released": {"owner": "a", "fence": 7, "took": 2.5},
    "handed_over": {"owner": "a", "fence": 7, "took": 2.5},
    "expired": {"owner": "a", "fence": 7, "took": 12.5, "overrun": 2.5, "message": "too late"},
    "lost": {"owner": "a", "fence": 7, "took": 10.0, "next_owner": "b", "next_fence": 8},
    "overlapped": {"owner": "a", "fence": 7, "took": 12.5, "overrun": 2.5, "next_owner": "b", "next_fence": 8, "message": "too late"},
    "dropped": {"owner": "a", "fence": 7, "took": 2.5},
    "done": {"owner": "a", "fence": 7, "attempt": 1, "took": 2.5},
    "retry": {"owner": "a", "fence": 7, "attempt": 1, "took": 2.5, "message": "try later"},
    "dead": {"owner": "a", "fence": 7, "attempt": 3, "took": 2.5, "message": "no paper"},
    "skipped": {"took": 0.5, "message": "running"},
    "leader": {"holder": "b", "holder_fence": 8},
    "warning": {"owner": "a", "fence": 7, "message": "dropped without release"},
}
SERVER_EVENTS = {"server_failed": "refused", "server_recovered": "answers", "failed_over": "another node answers"}


def points(at: int) -> str:
    """The points of the ten seconds before `at`, a time in nanoseconds."""
    found = []
    for app in CLIENTS:
        for category, kind in CATEGORIES:
            for event, fields in EVENTS.items():
                tags = {"app": app, "category": category, "kind": kind, "event": event} | ({"reason": "expired"} if event == "lost" else {})
                found.append((tags, {"lock_name": category.replace("{id}", "42")} | fields))
        for server in SERVERS:
            for event, message in SERVER_EVENTS.items():
                found.append(({"app": app, "event": event, "server": server}, {"message": message}))
    step = 10_000_000_000 // len(found)
    return "\n".join(line(tags, fields, at - place * step) for place, (tags, fields) in enumerate(found))


def line(tags: dict[str, str], fields: dict[str, Any], at: int) -> str:
    tagged = "".join(f",{tag}={value}" for tag, value in tags.items() if value)
    return f"locktender{tagged} {','.join(f'{field}={valued(value)}' for field, value in fields.items())} {at}"


def valued(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return f"{value}i" if isinstance(value, int) else str(value)
