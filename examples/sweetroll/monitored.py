"""Monitored: what the demo's clients count, for Prometheus, and their events, for InfluxDB."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import Request, urlopen

from locktender import metrics
from locktender.influxdb import Points

MEDIA_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class Scrape(BaseHTTPRequestHandler):
    """The answer to Prometheus, which asks repeatedly."""

    def do_GET(self) -> None:
        text = metrics().openmetrics().encode()
        self.send_response(200)
        self.send_header("Content-Type", MEDIA_TYPE)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def scraped(port: int | None) -> Iterator[None]:
    """Serves the metrics of this process on a loopback port; 0 is a free one."""
    if port is None:
        yield
        return
    try:
        serving = ThreadingHTTPServer(("127.0.0.1", port), Scrape)
    except (OSError, OverflowError) as error:
        raise SystemExit(f"--metrics {port}: {error}") from None
    with serving as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(f"metrics at http://127.0.0.1:{server.server_port}/metrics", flush=True)
        yield
        server.shutdown()


@contextmanager
def written(url: str | None, apps: list[str]) -> Iterator[dict[str, Points]]:
    """For each of these applications, what writes its events to the InfluxDB at this URL, once a second."""

    def write(lines: str) -> None:
        urlopen(Request(url or "", lines.encode()), timeout=10).close()

    points = {app: Points(write, interval=1.0, app=app) for app in apps if url}
    yield points
    for app, each in points.items():
        each.flush()
        if each.dropped:
            print(f"{each.dropped} events of {app} could not be written to {url}", file=sys.stderr)
