"""PromQL: the queries of the Prometheus dashboard, of the applications and categories that are chosen."""

from grafana import Json

RANGE = "$__range"
QUANTILES = (0.5, 0.95, 0.99)
CHOSEN = 'app=~"$app", category=~"$category"'


def of(metric: str, *more: str, **equal: str) -> str:
    """A metric of the chosen applications and categories."""
    matchers = ", ".join([CHOSEN, *more, *(f'{label}="{value}"' for label, value in equal.items())])
    return f"{metric}{{{matchers}}}"


def of_app(metric: str) -> str:
    """A metric that has no category: of a server, or of a client."""
    return f'{metric}{{app=~"$app"}}'


def summed(by: str) -> str:
    return f"sum by ({by})" if by else "sum"


def rate(by: str, counter: str) -> str:
    return f"{summed(by)} (rate({counter}[$__rate_interval]))"


def new(by: str, counter: str, window: str = "$__rate_interval", step: str = "$__interval") -> str:
    """How much a counter of rare things rose.

    `increase` alone doesn't see the first one if the series began with it: that overlap would be missed.
    """
    first = f"last_over_time({counter}[{step}]) unless {counter} offset {step}"
    return f"{summed(by)} ((increase({counter}[{window}]) > 0) or ({first}))"


def total(counter: str) -> str:
    """How much a counter of rare things rose in the shown time: 0 if there are clients, no data if there are none."""
    return f"{new('', counter, RANGE, RANGE)} or sum({of('locktender_acquire_rounds_total')} * 0)"


def over_time(expression: str, legend: str) -> Json:
    return {"expr": expression, "legendFormat": legend, "range": True, "instant": False, "format": "time_series"}


def now(expression: str, legend: str = "") -> Json:
    return {"expr": expression, "legendFormat": legend, "range": False, "instant": True, "format": "time_series"}


def rows_of(*expressions: str) -> list[Json]:
    """What a table joins."""
    return [{**now(expression), "format": "table"} for expression in expressions]


def quantiles(histogram: str) -> list[Json]:
    buckets = f"sum by (le) (rate({of(f'{histogram}_bucket')}[$__rate_interval]))"
    return [over_time(f"histogram_quantile({each}, {buckets})", f"p{each * 100:.0f}") for each in QUANTILES]


NO_ELECTION = 'kind!="election"'
EXCEEDED = "locktender_validity_exceeded_total"
# In seconds: one look for each point that the panel could show, times the time between two looks. So long times cost no more.
HELD_FOR = f"sum_over_time({of('locktender_held')}[{RANGE}:$__interval]) * $__interval_ms / 1000"
LEADING = f"sum by (category, app, instance) ({of('locktender_held', kind='election')}) > 0"


def led(gauge: str) -> str:
    """A gauge of the elections that a process leads now."""
    return f"max by (category, app, instance) ({of(gauge, kind='election')}) and on (category, app, instance) ({LEADING})"
