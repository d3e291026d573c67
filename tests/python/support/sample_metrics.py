"""Sample metrics: a text as `client.openmetrics()` gives it, of three applications in which everything happens all the time.

Applications that are well would leave most panels empty: whose test run has an overlap?
"""

from collections.abc import Iterator

APPS = ("shop", "billing")
# One client has no application's name.
CLIENTS = (*APPS, "")
# A category and its kind. One has letters that a pattern must escape.
CATEGORIES = (("orders", "lock"), ("user:{id}", "lock"), ("mail", "job"), ("nightly", "cron_job"), ("scheduler", "election"))
SERVERS = ("redis-1:6379", "redis-2:6379")

# Counters of a category, and the label that splits each.
COUNTERS: dict[str, tuple[str, tuple[str, ...]] | None] = {
    "attempts": None,
    "busy": None,
    "acquires": ("end", ("acquired", "not_acquired", "timed_out", "cancelled", "acquire_failed", "done", "dead", "skipped")),
    "holds": ("end", ("released", "handed_over", "expired", "overlapped", "lost", "dropped")),
    "losses": ("reason", ("expired", "missing", "taken", "superseded", "conflict", "max_hold", "closed", "ended")),
    "validity_exceeded": ("overlap", ("proved", "excluded", "unknown")),
    "renewals": None,
    "late_renewals": None,
    "extensions": None,
    "job_attempts": ("end", ("done", "retry", "dead")),
}
HISTOGRAMS = ("wait_seconds", "hold_seconds", "renewal_seconds", "handover_seconds")
BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200)
# Gauges of a category, with a value.
GAUGES = {
    "held": 1,
    "waiting": 2,
    "longest_hold_seconds": 3.5,
    "longest_wait_seconds": 1.5,
    "least_validity_seconds": 7.25,
    "max_hold_ratio": 0.4,
    "last_fence": 1781234567890123,
}
SERVER_COUNTERS = ("server_failures", "failovers")
CLIENT_COUNTERS = ("warnings", "events_dropped")


def openmetrics(count: int) -> str:
    """The text of all clients after everything has happened `count` times to each."""
    return "".join(f"{line}\n" for line in lines(count)) + "# EOF\n"


def lines(count: int) -> Iterator[str]:
    categories = [{"app": app, "category": category, "kind": kind} for app in CLIENTS for category, kind in CATEGORIES]
    servers = [{"app": app, "server": server} for app in CLIENTS for server in SERVERS]
    for name, split in COUNTERS.items():
        yield f"# TYPE locktender_{name} counter"
        label, values = split or ("", ("",))
        for labels in categories:
            for value in values:
                yield sample(f"{name}_total", labels | ({label: value} if label else {}), count)
    for name in HISTOGRAMS:
        yield f"# TYPE locktender_{name} histogram"
        for labels in categories:
            for at, bound in enumerate((*map(float, BUCKETS), "+Inf"), 1):
                yield sample(f"{name}_bucket", labels | {"le": str(bound)}, at * count)
            yield sample(f"{name}_sum", labels, count * 2.5)
            yield sample(f"{name}_count", labels, (len(BUCKETS) + 1) * count)
    for name, number in GAUGES.items():
        yield f"# TYPE locktender_{name} gauge"
        yield from (sample(name, labels, number) for labels in categories)
    yield "# TYPE locktender_server_up gauge"
    yield from (sample("server_up", labels, 1) for labels in servers)
    for name in SERVER_COUNTERS:
        # The series begin with the first event, and no other one follows.
        yield f"# TYPE locktender_{name} counter"
        yield from (sample(f"{name}_total", labels, 1) for labels in servers)
    for name in CLIENT_COUNTERS:
        yield f"# TYPE locktender_{name} counter"
        yield from (sample(f"{name}_total", {"app": app}, count) for app in CLIENTS)


def sample(name: str, labels: dict[str, str], value: float) -> str:
    labelled = ",".join(f'{label}="{each}"' for label, each in labels.items())
    return f"locktender_{name}{{{labelled}}} {value}"
