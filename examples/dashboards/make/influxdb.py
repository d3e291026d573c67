"""The InfluxDB dashboard: the clients' events, one point each, asked in InfluxQL."""

from functools import partial

from grafana import ORANGE, PURPLE, RED, TITLES, Json, Panel, bars, graph, share, stat, table, variable
from grafana import dashboard as made

# InfluxQL has no answer where there is no point.
number = partial(stat, none="0")

CHOSEN = '"app" =~ /^$app$/ AND "category" =~ /^$category$/'
CHOSEN_APP = '"app" =~ /^$app$/'
# A lost hold ends once more, when its holder releases it: that event has the time of the hold.
ENDS = '"event" =~ /^(released|handed_over|expired|overlapped|dropped)$/'
WAITS = '"event" =~ /^(acquired|not_acquired|timed_out|cancelled|acquire_failed|skipped)$/'
EACH_TIME = "time($__interval)"


def points(fields: str, where: str, by: str = "", chosen: str = CHOSEN, end: str = "") -> str:
    """A query for events of the chosen applications in the shown time."""
    grouped = f" GROUP BY {by}" if by else ""
    return f'SELECT {fields} FROM "locktender" WHERE {where} AND {chosen} AND $timeFilter{grouped}{end}'


def target(query: str, alias: str = "", form: str = "time_series") -> Json:
    return {"query": query, "rawQuery": True, "resultFormat": form, "alias": alias}


def count(where: str, alias: str = "", by: str = "", counted: str = "lock_name", chosen: str = CHOSEN) -> Json:
    """How many events there were in each interval. Every event of a lock has its name, each other one a message."""
    groups = ", ".join(filter(None, [EACH_TIME, by]))
    return target(points(f'count("{counted}")', where, groups, chosen, " fill(0)"), alias)


def total(where: str) -> list[Json]:
    return [target(points('count("lock_name")', where))]


def percentiles(where: str, field: str = "took") -> list[Json]:
    return [target(points(f'percentile("{field}", {each})', where, EACH_TIME, end=" fill(null)"), f"p{each}") for each in (50, 95, 99)]


WRONG = [
    number(
        "Proved overlaps",
        "How often, in the shown time, another holder was proved to have had the lock before this one released it: data may be wrong.",
        total("\"event\" = 'overlapped'"),
        (1, RED),
    ),
    number(
        "Released too late",
        "How often, in the shown time, a lock was released after its key was gone, and no other hold was seen in between.",
        total("\"event\" = 'expired'"),
        (1, ORANGE),
    ),
    number(
        "Locks lost",
        "How many holds, in the shown time, were lost for another reason than max_hold or a closed client.",
        total("\"event\" = 'lost' AND \"reason\" !~ /^(max_hold|closed)$/"),
        (1, RED),
    ),
    number(
        "Dead jobs",
        "How often, in the shown time, a job failed in its last attempt or was found dead: it runs again only when a person resets it.",
        total("\"event\" = 'dead'"),
        (1, PURPLE),
    ),
    number(
        "Failovers",
        "How often, in the shown time, another node answered for a server, or its node was restarted.",
        [target(points('count("message")', "\"event\" = 'failed_over'", chosen=CHOSEN_APP))],
        (1, ORANGE),
    ),
    number(
        "Longest wait",
        "The longest wait of an acquire that ended in the shown time.",
        [target(points('max("took")', WAITS))],
        (60, ORANGE),
        unit="s",
    ),
]

POSSESSION = [
    share(
        "Held for, by application",
        "How long each application held locks, counted when a hold ends, in the shown time.",
        [target(points('sum("took")', ENDS, '"app"'), "$tag_app")],
        unit="s",
        columns=8,
    ),
    graph(
        "Share of time, by application",
        "How much of the time each application held locks, counted when a hold ends: 100 % is one lock held all the time.",
        [target(points('sum("took") / ($__interval_ms / 1000)', ENDS, f'{EACH_TIME}, "app"', end=" fill(0)"), "$tag_app")],
        unit="percentunit",
        stacked=True,
        interval="1m",
        columns=8,
    ),
    bars(
        "Acquired, by application",
        "How many locks each application got.",
        [count("\"event\" = 'acquired'", "$tag_app", '"app"')],
        columns=8,
    ),
    table(
        "What happened to a lock",
        "The last 200 events, newest first: write the lock's name, or a part of it, into the field Lock above.",
        [
            target(
                points(
                    '"event", "app", "lock_name", "owner", "fence", "took", "overrun", "next_owner", "next_fence", "reason", "message"',
                    '"lock_name" =~ /$lock/ AND "event" !~ /^(round|renewed)$/',
                    end=" ORDER BY time DESC LIMIT 200",
                ),
                form="table",
            )
        ],
        columns=24,
        rows=10,
    ),
]

TRAFFIC = [
    bars(
        "Rounds, busy, acquired and overlaps",
        "How often clients asked for a lock, found it held, and got it; overlaps are red.",
        [
            count("\"event\" = 'round'", "round"),
            count('"event" =~ /^(busy|not_acquired)$/', "busy"),
            count("\"event\" = 'acquired'", "acquired"),
            count("\"event\" = 'overlapped'", "overlapped"),
        ],
    ),
    bars(
        "Acquires that got no lock, by end",
        "Acquires that ended without the lock: `not_acquired` is a single attempt at a held lock, `timed_out` a wait that was over, `acquire_failed` another reason, in the message.",
        [count('"event" =~ /^(not_acquired|timed_out|cancelled|acquire_failed|skipped)$/', "$tag_event", '"event"')],
    ),
    graph(
        "Waiters before a new waiter",
        "The largest number of waiters that an acquire found in the queue of its lock.",
        [target(points('max("rank")', "\"event\" = 'queued'", f'{EACH_TIME}, "category"', end=" fill(null)"), "$tag_category")],
        columns=24,
        rows=6,
    ),
]

TIMES = [
    graph("Wait", "How long acquires took: half of them less than p50, 99 % less than p99.", percentiles(WAITS), "s", columns=8),
    graph("Hold", "How long ended holds lasted: a long hold makes others wait.", percentiles(ENDS), "s", columns=8),
    graph(
        "Hand-over",
        "How long it took from the notification of a waiter to its grant: this time a lock is free although someone waits.",
        percentiles("\"event\" = 'acquired'", "notified_ago"),
        "s",
        columns=8,
    ),
]

SAFETY = [
    bars(
        "Validity exceeded",
        "Releases that came after the key was gone: red if another hold in between is proved, orange if none was seen.",
        [count("\"event\" = 'overlapped'", "overlapped"), count("\"event\" = 'expired'", "unknown")],
    ),
    graph(
        "Overrun",
        "How long after the end of its validity a lock was released, at most.",
        [target(points('max("overrun")', '"event" =~ /^(expired|overlapped)$/', f'{EACH_TIME}, "category"', end=" fill(null)"), "$tag_category")],
        "s",
    ),
    bars(
        "Lost holds, by reason",
        "Holds that were lost, and why: `expired` is a renewal that came too late, `missing` a key that was deleted.",
        [count("\"event\" = 'lost'", "$tag_reason", '"reason"')],
    ),
    graph(
        "Renewals and extensions",
        "How long a server took to confirm a renewal or an extension.",
        percentiles('"event" =~ /^(renewed|extended)$/'),
        "s",
    ),
]

WORK = [
    table(
        "Terms of leaders",
        "The terms that began, newest first: the fence is the term, and the owner is the process that leads.",
        [
            target(
                points(
                    '"category", "app", "lock_name", "owner", "fence"',
                    "\"kind\" = 'election' AND \"event\" = 'acquired'",
                    end=" ORDER BY time DESC LIMIT 50",
                ),
                form="table",
            )
        ],
    ),
    bars(
        "Attempts of jobs",
        "How jobs ended and attempts failed: `retry` failed and comes again, `dead` failed for the last time or was found dead.",
        [count('"event" =~ /^(done|retry|dead)$/', "$tag_event", '"event"')],
    ),
]

SERVERS = [
    bars(
        "Servers",
        "When servers stopped answering, answered again, or another node answered for them.",
        [count('"event" =~ /^(server_failed|server_recovered|failed_over)$/', "$tag_server $tag_event", '"server", "event"', "message", CHOSEN_APP)],
    ),
    table(
        "Warnings and failures",
        "What servers and clients said that a person should read, newest first.",
        [
            target(
                points(
                    '"event", "app", "server", "lock_name", "message"',
                    '"event" =~ /^(warning|server_failed|failed_over|acquire_failed)$/',
                    chosen=CHOSEN_APP,
                    end=" ORDER BY time DESC LIMIT 100",
                ),
                form="table",
            )
        ],
    ),
]

ROWS = dict(zip(TITLES, (WRONG, POSSESSION, TRAFFIC, TIMES, SAFETY, WORK, SERVERS), strict=True))


def dashboard() -> Json:
    source = {"type": "influxdb", "uid": "${datasource}"}
    lock = {"type": "textbox", "name": "lock", "label": "Lock", "query": "", "current": {"selected": True, "text": "", "value": ""}}
    variables = [
        variable("app", "Application", 'SHOW TAG VALUES FROM "locktender" WITH KEY = "app"', source),
        variable("category", "Category", 'SHOW TAG VALUES FROM "locktender" WITH KEY = "category" WHERE "app" =~ /^$app$/', source),
        {**lock, "options": [], "hide": 0},
    ]
    description = "Locks, jobs and leaders of locktender, from the events of its clients."
    return made("locktender-influxdb", "locktender (events)", description, "influxdb", variables, ROWS)
