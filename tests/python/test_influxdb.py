"""Points for InfluxDB: lines that another's parser reads, in batches by size and time."""

import logging
import threading
import uuid

import pytest
from line_protocol_parser import parse_line

from locktender import Client, InvalidArgumentError
from locktender.influxdb import Points
from support.observe import PATIENCE, until


@pytest.fixture
def points():
    written = []
    points = Points(written.append, app="bill,ing = \\", interval=600)
    points.written = written
    return points


def test_a_parser_of_others_reads_what_hostile_names_write(points):
    hostile = 'a" ,=\\\n{ <b>\x1b'
    seen = []
    with Client(f"memory://{uuid.uuid4().hex}", on_event=lambda event: seen.append(points(event))) as client:
        with client.lock(hostile) as held:
            pass
        until(lambda: len(seen) == 3, PATIENCE)
    assert points.flush(PATIENCE)
    read = [parse_line(line) for batch in points.written for line in batch.splitlines()]
    assert [point["tags"]["event"] for point in read] == ["round", "acquired", "released"]
    acquired = read[1]
    assert acquired["measurement"] == "locktender"
    assert acquired["tags"]["app"] == "bill,ing = /" and acquired["tags"]["kind"] == "lock"
    fields = acquired["fields"]
    assert fields["lock_name"] == hostile.replace("\n", "\ufffd").replace("\x1b", "\ufffd")
    assert (fields["owner"], fields["fence"], fields["message"]) == (held.owner, held.fence, "acquired")
    assert isinstance(fields["took"], float) and acquired["time"] > 1.7e18


def test_a_batch_is_written_when_it_is_full_and_the_rest_when_its_time_has_come():
    written = []
    points = Points(written.append, size=4, interval=0.05)
    with Client(f"memory://{uuid.uuid4().hex}", on_event=points) as client:
        for _ in range(3):
            with client.lock("orders:42"):
                pass
        until(lambda: sum(batch.count("\n") for batch in written) == 9, PATIENCE)
    assert max(batch.count("\n") for batch in written) <= 4


def test_a_write_that_fails_or_hangs_loses_its_points_and_nothing_else(caplog):
    caplog.set_level(logging.ERROR, "locktender")
    go_on, calls = threading.Event(), []

    def write(lines):
        calls.append(lines)
        go_on.wait(PATIENCE)
        raise OSError("refused")

    points = Points(write, size=3, interval=600)
    with Client(f"memory://{uuid.uuid4().hex}", on_event=points) as client:
        for _ in range(30):
            with client.lock("orders:42"):
                pass
        until(lambda: points.dropped > 0 and calls, PATIENCE)
        go_on.set()
        until(lambda: points.flush(PATIENCE) and points.dropped == 90, PATIENCE)
    assert points.dropped == 90 and "refused" in caplog.text


@pytest.mark.parametrize("wrong", [{"size": 0}, {"size": 1.5}, {"interval": 0}, {"interval": float("nan")}, {"app": 7}])
def test_a_wrong_option_is_refused_where_it_is_given(wrong):
    [name] = wrong
    with pytest.raises(InvalidArgumentError, match=f"^{name}: "):
        Points(print, **wrong)
    with pytest.raises(InvalidArgumentError, match="^write: "):
        Points("http://localhost:8086/write")
