"""The Prometheus dashboard: what `client.metrics()` says, over time."""

from grafana import GREEN, ORANGE, PURPLE, RED, TITLES, Json, Panel, bars, graph, joined, override, share, stat, table, timeline, variable
from grafana import dashboard as made
from promql import EXCEEDED, HELD_FOR, LEADING, NO_ELECTION, RANGE, led, new, now, of, of_app, over_time, quantiles, rate, rows_of, total

WRONG = [
    stat(
        "Proved overlaps",
        "How often, in the shown time, another holder was proved to have had the lock before this one released it: data may be wrong.",
        [now(total(of(EXCEEDED, overlap="proved")))],
        (1, RED),
    ),
    stat(
        "Released too late",
        "How often, in the shown time, a lock was released after its key was gone, and no other hold was seen in between.",
        [now(total(of(EXCEEDED, overlap="unknown")))],
        (1, ORANGE),
    ),
    stat(
        "Locks lost",
        "How many holds, in the shown time, were lost for another reason than max_hold or a closed client.",
        [now(total(of("locktender_losses_total", 'reason!~"max_hold|closed"')))],
        (1, RED),
    ),
    stat(
        "Dead jobs",
        "How many jobs, in the shown time, failed in their last attempt: they run again only when a person resets them.",
        [now(total(of("locktender_job_attempts_total", end="dead")))],
        (1, PURPLE),
    ),
    stat(
        "Servers down",
        "How many servers do not answer at least one of their clients now.",
        [now(f"count(min by (server) ({of_app('locktender_server_up')}) == 0) or sum({of_app('locktender_server_up')} * 0)")],
        (1, RED),
    ),
    stat(
        "Longest wait now",
        "How long the acquire that has waited longest has waited until now, without candidates of elections, who may wait for days.",
        [now(f"max({of('locktender_longest_wait_seconds', NO_ELECTION)})")],
        (60, ORANGE),
        unit="s",
    ),
]

POSSESSION = [
    table(
        "Who holds what",
        "Each application and category: what it holds and waits for now, and how long it held it in the shown time "
        "(100 % is one lock held all the time).",
        rows_of(
            f"sum by (app, category) ({of('locktender_held')})",
            f"max by (app, category) ({of('locktender_longest_hold_seconds')})",
            f"sum by (app, category) ({of('locktender_waiting')})",
            f"max by (app, category) ({of('locktender_longest_wait_seconds')})",
            new("app, category", of("locktender_acquires_total", end="acquired"), RANGE, RANGE),
            f"sum by (app, category) ({HELD_FOR})",
            f"sum by (app, category) ({HELD_FOR}) / $__range_s",
        ),
        columns=24,
        transformations=joined("Held now", "Longest hold now", "Waiting now", "Longest wait now", "Acquired", "Held for", "Share of time"),
        overrides=[
            *(override(name, unit="s") for name in ("Longest hold now", "Longest wait now", "Held for")),
            override("Share of time", unit="percentunit", decimals=1),
            override("Acquired", decimals=0),
        ],
    ),
    share(
        "Share of time, by application",
        "How much of the shown time each application held locks: 100 % is one lock held all the time.",
        [now(f"sum by (app) ({HELD_FOR}) / $__range_s", "{{app}}")],
        columns=8,
    ),
    graph(
        "Held, by application",
        "How many locks each application held.",
        [over_time(f"sum by (app) ({of('locktender_held')})", "{{app}}")],
        stacked=True,
        columns=8,
    ),
    graph(
        "Waiting, by category",
        "How many acquires waited for a lock of each category.",
        [over_time(f"sum by (category) ({of('locktender_waiting')})", "{{category}}")],
        stacked=True,
        columns=8,
    ),
]

TRAFFIC = [
    graph(
        "Rounds, busy, acquired and overlaps",
        "How often in a second clients asked for a lock, found it held, and got it; overlaps are counted on the right, in red.",
        [
            over_time(rate("", of("locktender_acquire_rounds_total")), "round"),
            over_time(rate("", of("locktender_busy_total")), "busy"),
            over_time(rate("", of("locktender_acquires_total", end="acquired")), "acquired"),
            over_time(new("", of(EXCEEDED, overlap="proved")), "overlapped"),
        ],
        unit="ops",
        overrides=[override("overlapped", unit="short", custom__drawStyle="bars", custom__fillOpacity=80, custom__axisPlacement="right")],
    ),
    graph(
        "Acquires, by end",
        "How acquires ended: `not_acquired` is a single attempt at a held lock, `timed_out` a wait that was over.",
        [over_time(rate("end", of("locktender_acquires_total")), "{{end}}")],
        unit="ops",
        stacked=True,
    ),
    graph(
        "Contention, by category",
        "The share of attempts that found the lock held: close to 100 % means that acquires mostly wait.",
        [over_time(f"{rate('category', of('locktender_busy_total'))} / {rate('category', of('locktender_acquire_rounds_total'))}", "{{category}}")],
        unit="percentunit",
    ),
    graph(
        "Holds, by end",
        "How holds ended: `released` and `handed_over` are normal, `dropped` is a handle that a program forgot.",
        [over_time(rate("end", of("locktender_holds_total")), "{{end}}")],
        unit="ops",
        stacked=True,
    ),
]

TIMES = [
    graph(
        "Wait",
        "How long acquires took, with any end: half of them less than p50, 99 % less than p99.",
        quantiles("locktender_wait_seconds"),
        "s",
        columns=8,
    ),
    graph(
        "Hold",
        "How long ended holds lasted: a long hold makes others wait.",
        quantiles("locktender_hold_seconds"),
        "s",
        columns=8,
    ),
    graph(
        "Hand-over",
        "How long it took from the notification of a waiter to its grant: this time a lock is free although someone waits.",
        quantiles("locktender_handover_seconds"),
        "s",
        columns=8,
    ),
    graph(
        "Longest hold now",
        "The age of the oldest hold of each category: a line that only rises is a lock that is never released.",
        [over_time(f"max by (app, category) ({of('locktender_longest_hold_seconds')})", "{{app}} {{category}}")],
        "s",
        columns=8,
    ),
    graph(
        "Longest wait now",
        "The time of the longest acquire under way, of each category.",
        [over_time(f"max by (app, category) ({of('locktender_longest_wait_seconds')})", "{{app}} {{category}}")],
        "s",
        columns=8,
    ),
    graph(
        "Use of max_hold",
        "The largest share of its max_hold that a hold has used: at 100 % the lock is taken away from it.",
        [over_time(f"max by (app, category) ({of('locktender_max_hold_ratio')})", "{{app}} {{category}}")],
        "percentunit",
        columns=8,
    ),
]

SAFETY = [
    bars(
        "Validity exceeded",
        "Releases that came after the key was gone: red if another hold in between is proved, orange if none was seen.",
        [over_time(new("overlap", of(EXCEEDED)), "{{overlap}}")],
    ),
    bars(
        "Lost holds, by reason",
        "Holds that were lost, and why: `expired` is a renewal that came too late, `missing` a key that was deleted.",
        [over_time(new("reason", of("locktender_losses_total")), "{{reason}}")],
    ),
    bars(
        "Late renewals",
        "Renewals that were confirmed when less than a third of the ttl was left: the next pause may lose the lock.",
        [over_time(new("app, category", of("locktender_late_renewals_total")), "{{app}} {{category}}")],
        columns=8,
    ),
    graph(
        "Least validity",
        "The time that the hold closest to its end has left: a line that comes close to 0 is a lock that is nearly lost.",
        [over_time(f"min by (app, category) ({of('locktender_least_validity_seconds')})", "{{app}} {{category}}")],
        "s",
        columns=8,
    ),
    graph(
        "Renewals and extensions",
        "How long a server took to confirm a renewal or an extension.",
        quantiles("locktender_renewal_seconds"),
        "s",
        columns=8,
    ),
]

WORK = [
    timeline(
        "Leaders",
        "Which process led each election: a gap in all bands of an election is a time without a leader.",
        [over_time(LEADING, "{{category}}: {{app}} {{instance}}")],
        {"1": ("leads", GREEN)},
    ),
    table(
        "Leaders now",
        "The leader of each election, its term, and how long it has led.",
        rows_of(led("locktender_last_fence"), led("locktender_longest_hold_seconds")),
        transformations=joined("Term", "Leads for"),
        overrides=[override("Term", unit="none", decimals=0), override("Leads for", unit="s")],
    ),
    bars(
        "New terms",
        "How many terms began in each election: more than one in a while means that leaders fail or are lost.",
        [over_time(new("category", of("locktender_acquires_total", kind="election", end="acquired")), "{{category}}")],
    ),
    bars(
        "Attempts of jobs",
        "How attempts of jobs and scheduled times ended: `retry` failed and comes again, `dead` failed for the last time.",
        [over_time(new("end", of("locktender_job_attempts_total")), "{{end}}")],
    ),
]

SERVERS = [
    timeline(
        "Servers",
        "Whether each server answered all of its clients.",
        [over_time(f"min by (server) ({of_app('locktender_server_up')})", "{{server}}")],
        {"1": ("up", GREEN), "0": ("down", RED)},
        columns=24,
        rows=6,
    ),
    bars(
        "Failures",
        "How often a server stopped answering a client: renewals fail until it answers again.",
        [over_time(new("server", of_app("locktender_server_failures_total")), "{{server}}")],
        columns=8,
    ),
    bars(
        "Failovers",
        "How often another node answered for a server, or its node was restarted: locks that were granted last may be lost.",
        [over_time(new("server", of_app("locktender_failovers_total")), "{{server}}")],
        columns=8,
    ),
    bars(
        "Warnings and dropped events",
        "Events of kind warning, which a person should read in the log, and events that a listener was too slow to get.",
        [
            over_time(new("", of_app("locktender_warnings_total")), "warnings"),
            over_time(new("", of_app("locktender_events_dropped_total")), "dropped events"),
        ],
        columns=8,
    ),
]

ROWS = dict(zip(TITLES, (WRONG, POSSESSION, TRAFFIC, TIMES, SAFETY, WORK, SERVERS), strict=True))


def dashboard() -> Json:
    source = {"type": "prometheus", "uid": "${datasource}"}
    variables = [
        variable("app", "Application", "label_values(locktender_acquire_rounds_total, app)", source),
        variable("category", "Category", 'label_values(locktender_acquire_rounds_total{app=~"$app"}, category)', source),
    ]
    description = "Locks, jobs and leaders of locktender, from the metrics of its clients."
    return made("locktender-prometheus", "locktender", description, "prometheus", variables, ROWS)
