"""The fight and its check: the exit code is 1 if two processes held the sweetroll at once, or a fence did not rise."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from history import History
from server import private_servers
from stage import Notice, Stage
from table import table
from timeline import timeline
from watched import watched

if TYPE_CHECKING:
    from locktender import LockEvent


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="examples/demo", description="Three processes in three languages fight for one lock.")
    parser.add_argument("--seconds", type=float, help="how long they fight (default 10); every trouble comes once at least")
    parser.add_argument("--ttl", type=float, help="the lock's time to live in seconds (default: a tenth of the fight)")
    parser.add_argument("--quorum", action="store_true", help="on five servers, of which two at a time are killed and revived")
    parser.add_argument("--troubles", action="store_true", help="no fight: what operators fear, and how they see it")
    parser.add_argument("--metrics", type=int, metavar="PORT", help="with --troubles: serve the metrics there; 0 is a free port")
    parser.add_argument("--influxdb", metavar="URL", help="with --troubles: write the events there")
    parser.add_argument("--watch", action="store_true", help="show it on a page for a browser, whose address is printed")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write that page to this file at the end")
    parser.add_argument("--plain", action="store_true", help="plain lines also on a terminal")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="keep the shared file here")
    parser.add_argument("--check", type=Path, metavar="FILE", help="fight nothing, judge this file")
    wanted = parser.parse_args()
    if wanted.troubles and (wanted.quorum or wanted.keep or wanted.check or wanted.ttl):
        parser.error("--troubles goes with --seconds, --metrics, --influxdb, --watch and --report only")
    if not wanted.troubles and (wanted.metrics is not None or wanted.influxdb):
        parser.error("--metrics and --influxdb go with --troubles")
    return wanted


def verdict(history: History) -> int:
    """Says whether the lock kept its promise."""
    violations = history.violations()
    for violation in violations:
        print(f"VIOLATED: {violation}")
    for stale in history.stale():
        print(f"refused:  {stale}")
    if violations:
        return 1
    print(f"checked:  {len(history.holds())} holds, no two of them valid at once, and fences only rose")
    return 0


def troubles(wanted: argparse.Namespace) -> int:
    from monitored import scraped, written  # here, because --check needs nothing installed
    from troubles import APPS, show

    with tempfile.TemporaryDirectory(prefix="sweetroll-") as directory, private_servers(1, Path(directory)) as (server,):
        page = watched([server.url], wanted.watch, wanted.report)
        with scraped(wanted.metrics), written(wanted.influxdb, APPS) as points, page as shown:

            def listen(app: str, event: LockEvent) -> None:
                if app in points:
                    points[app](event)
                if shown:
                    shown.event(app, event)

            show(server, wanted.seconds or 0.0, {app: partial(listen, app) for app in APPS})
    return 0


def fight(wanted: argparse.Namespace) -> int:
    count, seconds = 5 if wanted.quorum else 1, wanted.seconds or 10.0
    with tempfile.TemporaryDirectory(prefix="sweetroll-") as directory, private_servers(count, Path(directory)) as servers:
        shared = wanted.keep or Path(directory) / "sweetroll.jsonl"
        shared.write_text("")
        stage = Stage(servers, shared, seconds, wanted.ttl or seconds / 10)
        with watched([server.url for server in servers], wanted.watch, wanted.report) as page:
            lines = timeline(stage.rows, plain=wanted.plain or not sys.stdout.isatty())

            def show(notice: Notice) -> None:
                lines(notice)
                if page:
                    page.notice(notice)

            asyncio.run(stage.play(show))
            history = History.read(shared)
            print(table(stage.tallies, history))
            judged = verdict(history) or stage.failed
        return judged


def main() -> int:
    wanted = arguments()
    if wanted.troubles:
        return troubles(wanted)
    return verdict(History.read(wanted.check)) if wanted.check else fight(wanted)


try:
    sys.exit(main())
except KeyboardInterrupt:
    # It ends by the signal, as a shell expects, and without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
