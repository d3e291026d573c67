"""What operators ask the command `locktender`: `ls`, `show`, `history`, `wait`, `watch`, `break` and `doctor`."""

import json
import os
import pty
import re
import signal
import socket as sockets
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest
from commands import RUST, begun, environment, noted, ran, running
from locktender import Client
from support.cluster import Cluster
from support.observe import PATIENCE, until
from support.server import RealServer, free_port
from terminal import Terminal

HOSTILE = "\x1b[31mred\u202e"


@pytest.fixture
def client(server: RealServer):
    with Client(server.url, app="billing") as own:
        yield own


def table(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_ls_shows_who_holds_what_in_every_package(server: RealServer, client: Client, name: str, program: list[str]):
    with client.lock(f"{name}:b", ttl=60), client.lock(f"{name}:a") as held:
        held.extend()  # from here on its value shows the fence
        listed = ran(server, "ls", f"{name}:*", program=program)
        assert (listed.returncode, listed.stderr) == (0, "")
        header, *rows = table(listed.stdout)
        assert header == ["NAME", "HOLDER", "AGE", "REMAINING", "WAITERS"]
        assert [row[0] for row in rows] == [f"{name}:a", f"{name}:b"] and all(row[-1] == "0" for row in rows)
        assert rows[0][1].startswith("billing@") and rows[0][1].endswith(f":{os.getpid()}")
        first, second = map(json.loads, ran(server, "ls", "--json", f"{name}:*", program=program).stdout.splitlines())
        assert (first["owner"], first["fence"], first["app"], first["pid"]) == (held.owner, held.fence, "billing", os.getpid())
        assert 50_000 < second["remaining_ms"] <= 60_000 and second["waiters"] == 0


def test_ls_says_when_there_is_nothing_and_when_there_is_more(server: RealServer, client: Client, name: str):
    nothing = ran(server, "ls", f"{name}:*")
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "locktender: no lock is held\n")
    nothing = ran(server, "ls", "--json", f"{name}:*")
    assert nothing.stdout == "" and json.loads(nothing.stderr)["message"] == "no lock is held"
    with client.lock(f"{name}:a"), client.lock(f"{name}:b"):
        some = ran(server, "ls", "--limit", "1", f"{name}:*")
        assert len(some.stdout.splitlines()) == 2 and "--limit" in some.stderr
    assert ran(server, "ls", "--limit", "0").returncode == 64
    assert ran(server, "ls", "").returncode == 64


def test_hostile_names_and_values_are_printed_harmlessly(server: RealServer, name: str):
    with Client(server.url, app=HOSTILE) as client, client.lock(f"{name}:{HOSTILE}"):
        for words in (["ls", f"{name}:*"], ["show", f"{name}:{HOSTILE}"], ["ls", "--json", f"{name}:*"], ["wait", "-w", "0", f"{name}:{HOSTILE}"]):
            shown = ran(server, *words)
            assert "red" in shown.stdout + shown.stderr
            assert not {"\x1b", "\u202e"} & set((shown.stdout if "--json" not in words else "") + shown.stderr)
    server.command("SET", f"{name}:foreign", "host=\x1b[2J")
    assert "\\u{1b}[2J" in ran(server, "ls", f"{name}:foreign").stdout


def test_show_has_the_holder_and_those_who_wait(server: RealServer, client: Client, name: str):
    free = ran(server, "show", name)
    assert (free.returncode, free.stdout, free.stderr) == (1, "", f'locktender: nobody holds "{name}"\n')
    with client.lock(name) as held, running(server, "run", name, "--", "true"):
        until(lambda: (info := client.lock(name).inspect()) and info.waiters == 1)
        assert "fence      not shown\n" in ran(server, "show", name).stdout
        held.extend()
        shown = ran(server, "show", name).stdout
        assert f"fence      {held.fence}\n" in shown and f"owner      {held.owner}\n" in shown and "waiters    1\n           host=" in shown
        assert json.loads(ran(server, "show", "--json", name).stdout)["waiters"] == 1


def test_history_shows_who_held_what_in_every_package(server: RealServer, name: str, program: list[str]):
    with Client(server.url, app="billing", ttl=0.3) as client, client.lock(name) as held:
        until(lambda: client.history(name))
        shown = ran(server, "history", name, program=program)
        assert (shown.returncode, shown.stderr) == (0, "")
        header, (began, *rest) = table(shown.stdout)
        assert header == ["BEGAN", "NAME", "HOLDER", "FENCE", "STATE", "LASTED"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", began)
        assert rest == [name, f"billing@{held.owner.split()[1][5:]}:{os.getpid()}", str(held.fence), "holds"]
        (line,) = map(json.loads, ran(server, "history", "--json", name, program=program).stdout.splitlines())
        assert (line["name"], line["owner"], line["fence"], line["app"], line["pid"]) == (name, held.owner, held.fence, "billing", os.getpid())
        assert (line["state"], line["ended"], line["lasted_ms"]) == ("holds", None, None)


def test_history_has_the_latest_hold_first_and_marks_a_clock_that_was_ahead(name: str):
    with RealServer() as own:
        nothing = ran(own, "history")
        assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "locktender: no hold is noted\n")
        noted(own, f"{name}:a", 1_795_222_800_000, 1_795_222_925_000, "released")
        noted(own, f"{name}:b", 1_795_222_990_000, 1_795_222_930_500, "lost")
        header, later, earlier = table(ran(own, "history").stdout)
        assert earlier[:3] == ["2026-11-21T01:00:00Z", f"{name}:a", "billing@web-3:4711"]
        assert earlier[3:] == ["1795222800000007", "released", "2m", "5s"] and later[4:] == ["lost", "?"]
        later, earlier = map(json.loads, ran(own, "history", "--json").stdout.splitlines())
        assert (earlier["began"], earlier["ended"]) == ("2026-11-21T01:00:00.000Z", "2026-11-21T01:02:05.000Z")
        assert (earlier["lasted_ms"], later["lasted_ms"], later["state"]) == (125_000, None, "lost")
        assert [line.split()[1] for line in ran(own, "history", "-n", "1").stdout.splitlines()[1:]] == [f"{name}:b"]
        assert "of no-such" not in ran(own, "history", f"{name}:a").stderr
        assert ran(own, "history", "no-such").stderr == 'locktender: no hold of "no-such" is noted\n'
        with_prefix = ran(own, "history", "--prefix", f"{name}:", "a")
        assert [line.split()[1] for line in with_prefix.stdout.splitlines()] == ["NAME", "a"]
        assert ran(own, "history", "-n", "0").returncode == 64


def test_history_goes_on_behind_what_no_client_wrote(name: str):
    with RealServer() as own:
        noted(own, f"{name}:first", 1_795_222_800_000, "*", "released")
        many = "for i = 1, 1500 do redis.call('XADD', KEYS[1], '*', 'l', ARGV[1], 'o', 'host=w', 'f', i, 's', 'lost') end"
        own.command("EVAL", many, 1, "{~lt}:log", f"{name}:other")
        own.command("XADD", "{~lt}:log", "*", "what", "is this")
        noted(own, f"{name}:large", 10**13, "*", "lost")
        assert len(ran(own, "history", f"{name}:first").stdout.splitlines()) == 2
        assert len(ran(own, "history", "-n", "10000").stdout.splitlines()) == 1_502


def test_history_says_why_there_is_none(name: str):
    with RealServer() as own:
        own.command("SET", "{~lt}:log", "a basket")
        foreign = ran(own, "history")
        assert foreign.returncode == 78 and "there is a value of another type at {~lt}:log" in foreign.stderr
        own.command("ACL", "SETUSER", "narrow", "on", ">secret", "~*", "&*", "+@all", "-xrevrange")
        denied = ran(own, "history", "--server", own.url.replace("redis://", "redis://narrow:secret@"))
        assert denied.returncode == 78 and "xrevrange" in denied.stderr
        quorum = ran(own, "history", "--server", own.url, "--server", f"redis://127.0.0.1:{free_port()}")
        assert quorum.returncode == 64 and "a quorum has none" in quorum.stderr


def test_show_and_reset_know_the_job_of_a_lock(server: RealServer, client: Client, name: str):
    assert ran(server, "job", name, "--", "sh", "-c", "exit 3").returncode == 3
    assert "job        retrying, attempt 1 of 3\n" in (shown := ran(server, "show", name).stdout) and "error      exit code 3\n" in shown
    job = json.loads(ran(server, "show", "--json", name).stdout)["job"]
    assert (job["state"], job["attempts"], job["max_attempts"], job["last_error"]) == ("retrying", 1, 3, "exit code 3")
    assert "may run again" in ran(server, "reset", name).stderr and client.job(name).status().state == "new"
    nothing = ran(server, "reset", name)
    assert nothing.returncode == 1 and "nothing is known" in nothing.stderr


def test_ls_lists_jobs(server: RealServer, client: Client, name: str):
    nothing = ran(server, "ls", "--jobs", f"{name}:*")
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "locktender: nothing is known of any job\n")
    fails = ["sh", "-c", "echo 'no space left' >&2; exit 3"]
    assert ran(server, "job", "--max-attempts", "1", f"{name}:dead", "--", *fails).returncode == 3
    assert ran(server, "cron-job", "--every", "1h", f"{name}:{{tag}}", "--", "true").returncode == 0
    with client.lock(f"{name}:lock"):
        listed = ran(server, "ls", "--jobs", f"{name}:*")
    assert (listed.returncode, listed.stderr) == (0, "")
    header, dead, done = table(listed.stdout)
    assert header == ["NAME", "STATE", "ATTEMPT", "BEGAN", "LAST", "DONE", "ERROR"]
    assert dead[:5] == [f"{name}:dead", "dead", "1", "of", "1"] and " ".join(dead[-6:]) == "exit code 3: no space left"
    assert done[:5] == [f"{name}:{{tag}}", "done", "1", "of", "1"] and done[-1] == "ago"
    lines = [json.loads(line) for line in ran(server, "ls", "--jobs", "--json", f"{name}:*").stdout.splitlines()]
    assert [(line["name"], line["state"]) for line in lines] == [(f"{name}:dead", "dead"), (f"{name}:{{tag}}", "done")]
    assert lines[1]["last_done"] and lines[1]["scheduled_time"] and lines[0]["last_done"] is None
    assert len(ran(server, "ls", "--jobs", "--limit", "1", f"{name}:*").stdout.splitlines()) == 2


def test_wait_waits_until_a_job_is_done(server: RealServer, name: str):
    unknown = ran(server, "wait", "--done", "-w", "0.01", name)
    assert unknown.returncode == 75 and "is not done: new" in unknown.stderr
    with running(server, "wait", "--done", name) as waiting, running(server, "job", name, "--", "sh", "-c", "echo begun; cat") as job:
        assert begun(job) == "begun" and waiting.poll() is None
        job.communicate(timeout=PATIENCE)
        assert waiting.wait(PATIENCE) == 0
    assert ran(server, "job", "--max-attempts", "1", f"{name}:dead", "--", "sh", "-c", "exit 3").returncode == 3
    dead = ran(server, "wait", "--done", f"{name}:dead")
    assert dead.returncode == 80 and "failed: exit code 3" in dead.stderr


def test_wait_goes_on_while_the_server_is_started_again(name: str):
    with RealServer() as own, Client(own.url) as client:
        held = client.lock(name, ttl=60).acquire()
        with running(own, "wait", name) as waiting:
            # Its first look was answered: the server doesn't know the first one's script, and the second one comes by its hash again.
            until(lambda: int((re.search(r"cmdstat_evalsha:calls=(\d+)", own.command("INFO", "commandstats")) or [0, 0])[1]) >= 2)
            own.kill()
            own.restart_empty()
            assert waiting.wait(PATIENCE) == 0
        held.release()


def test_watch_on_a_terminal_shows_what_fits_and_leaves_the_screen_as_it_was(server: RealServer, client: Client, name: str):
    with ExitStack() as stack:
        for number in range(9):
            stack.enter_context(client.lock(f"{name}:{number}:{'x' * 100}"))
        with Terminal(*RUST, "watch", "-i", "0.1", f"{name}:*", env=environment(server)) as terminal:
            terminal.shows("\x1b[?1049h")
            terminal.has_size(6, 40)
            terminal.shows("… 7 more lines")
            picture = terminal.shows("… 7 more lines")
            lines = picture.split("\x1b[H")[-1].split("\x1b[K\r\n")
            assert len(lines) == 6 and all(len(line) <= 40 for line in lines) and lines[0].startswith("Every 100ms: locktender ls")
            os.kill(terminal.pid, signal.SIGTERM)
            terminal.shows("\x1b[?1049l")
            assert terminal.ended() == -signal.SIGTERM

def test_wait_returns_when_the_lock_is_free(server: RealServer, client: Client, name: str):
    assert ran(server, "wait", name).returncode == 0
    with client.lock(name) as held:
        busy = ran(server, "wait", "-w", "0.01", name)
        assert busy.returncode == 75 and "is still held by billing@" in busy.stderr
        with running(server, "wait", name) as waiting:
            with pytest.raises(subprocess.TimeoutExpired):
                waiting.wait(0.2)
            held.release()
            assert waiting.wait(PATIENCE) == 0
    assert client.lock(name).inspect() is None


def test_watch_shows_the_list_again_and_again(server: RealServer, client: Client, name: str):
    with running(server, "watch", "-i", "0.1", "--json", f"{name}*") as watching:
        assert watching.stdout is not None
        with client.lock(f"{name}:a"), client.lock(f"{name}:b"):
            seen = [json.loads(watching.stdout.readline())["name"] for _ in range(4)]
        assert {f"{name}:a", f"{name}:b"} == set(seen)
        # Who closes the pipe ends it.
        watching.stdout.close()
        with client.lock(f"{name}:c"):
            assert watching.wait(PATIENCE) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("what", ["watch", "demo"])
def test_a_signal_ends_it_in_every_package(
    server: RealServer, client: Client, name: str, program: list[str], what: str, number: signal.Signals
):
    words = ["watch", name] if what == "watch" else ["demo", "--prefix", name, "--seconds", "60"]
    with client.lock(name), running(server, *words, program=program) as process:
        begun(process)
        process.send_signal(number)
        # The demo takes it for the end of the fight.
        assert process.wait(PATIENCE) == (0 if what == "demo" else -number)
        assert process.stderr is not None and process.stderr.read() == ""


def test_break_ends_the_hold_that_a_person_has_seen(server: RealServer, client: Client, name: str):
    assert ran(server, "break", name).stderr == f'locktender: nobody holds "{name}"\n'
    held = client.lock(name, ttl=3).acquire()
    held.extend()
    asked = ran(server, "break", name)
    assert asked.returncode == 64 and "--yes" in asked.stderr and held.is_valid()
    for answer, code in (("n", 1), ("yes", 0)):
        controller, terminal = pty.openpty()
        with subprocess.Popen(
            [*RUST, "break", name], env=environment(server), stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as asking:
            os.write(controller, f"{answer}\n".encode())
            out, question = asking.communicate(timeout=PATIENCE)
        os.close(controller)
        os.close(terminal)
        assert asking.returncode == code and "End this hold? [y/N]" in question and held.owner in question
        assert (client.lock(name).inspect() is None) == (code == 0)
        assert out == ("" if code else f"ended the hold of billing@{held.owner.split()[1][5:]}:{os.getpid()} with the fence {held.fence}\n")
    loss = held.wait_lost(PATIENCE)
    assert loss is not None and loss.reason == "missing"


def test_break_leaves_a_value_that_no_locktender_wrote_unless_it_is_named(server: RealServer, name: str):
    server.command("SET", name, "a basket")
    left = ran(server, "break", "--yes", name)
    assert left.returncode == 78 and '"a basket"' in left.stderr and "--owner" in left.stderr
    other = ran(server, "break", "--yes", "--owner", "another", name)
    assert other.returncode == 1 and server.command("GET", name) == "a basket"
    assert ran(server, "break", "--yes", "--owner", "a basket", name).returncode == 0
    assert server.command("EXISTS", name) == 0


def test_break_wakes_the_next_waiter(server: RealServer, client: Client, name: str):
    held = client.lock(name).acquire()
    with running(server, "run", name, "--", "sh", "-c", "echo begun") as waiting:
        until(lambda: (info := client.lock(name).inspect()) and info.waiters == 1)
        broken = ran(server, "break", "--yes", "--json", name)
        assert json.loads(broken.stdout)["owner"] == held.owner
        assert waiting.wait(PATIENCE) == 0
    assert held.release().outcome in ("expired", "taken")


def test_doctor_tells_what_to_look_at(server: RealServer):
    report = ran(server, "doctor")
    assert report.returncode == 1 and "no right to" not in report.stdout
    lines = report.stdout.splitlines()
    assert lines[0] == server.url and any(line.split()[:1] == ["eviction"] for line in lines) and "  rights       all that locks need" in lines
    assert any(line.startswith("  warning ") for line in lines)
    read = json.loads(ran(server, "doctor", "--json").stdout)
    assert read["server"] == server.url and read["denied"] == [] and read["warnings"]


def test_doctor_notes_a_history_that_cannot_be_read(server: RealServer):
    assert ran(server, "doctor").stderr == ""
    with RealServer() as own:
        healthy = ran(own, "doctor")
        # The user may read and write all keys of locks, but not the history.
        own.command("ACL", "SETUSER", "narrow", "on", ">secret", "~*:~lt:*", "~{~lt}:marker", "&*", "+@all")
        narrow = ran(own, "doctor", "--server", own.url.replace("redis://", "redis://narrow:secret@"))
        assert narrow.returncode == healthy.returncode and "history" in narrow.stderr and "NOPERM" in narrow.stderr
        own.command("SET", "{~lt}:log", "a basket")
        foreign = ran(own, "doctor", "--json")
        assert foreign.returncode == healthy.returncode and len(foreign.stdout.splitlines()) == 1
        assert "there is a value of another type at {~lt}:log" in json.loads(foreign.stderr)["message"]
        quorum = ran(own, "doctor", "--server", own.url, "--server", server.url)
        assert quorum.stderr == ""


def test_doctor_says_of_no_cluster_that_is_down_that_locks_work():
    with ExitStack() as stack:
        cluster = Cluster(lambda **node: stack.enter_context(RealServer(**node)), 1, full_coverage=True)
        [node] = cluster.nodes
        node.command("CLUSTER", "DELSLOTS", 7)
        until(lambda: "cluster_state:fail" in node.command("CLUSTER", "INFO"), PATIENCE)
        down = ran(node, "doctor", "--server", cluster.url)
    assert down.returncode == 1 and "slots are served by no node" in down.stdout
    assert "locks work" not in down.stderr and "CLUSTERDOWN" in down.stderr


def test_without_a_server_the_exit_code_says_so(server: RealServer):
    nowhere = f"redis://127.0.0.1:{free_port()}"
    asked = (["ls"], ["show", "x"], ["history"], ["wait", "x"], ["break", "--yes", "x"], ["doctor"])
    with ThreadPoolExecutor() as pool:
        for words, done in zip(asked, pool.map(lambda words: ran(server, *words, "--server", nowhere), asked)):
            assert done.returncode == 69 and "refused" in done.stdout + done.stderr, words
    assert ran(server, "ls", "--server", "nonsense").returncode == 64


def test_a_user_without_the_right_to_scan_hears_which(server: RealServer, name: str):
    server.command("ACL", "SETUSER", "narrow", "on", ">secret", "~*", "&*", "+@all", "-scan")
    try:
        denied = ran(server, "ls", "--server", server.url.replace("redis://", "redis://narrow:secret@"))
        assert denied.returncode == 78 and "scan" in denied.stderr and "secret" not in denied.stderr
    finally:
        server.command("ACL", "DELUSER", "narrow")


def test_a_pipe_that_nobody_reads_is_no_error(server: RealServer, client: Client, name: str):
    with client.lock(name), running(server, "ls", stderr=subprocess.PIPE) as listing:
        assert listing.stdout is not None and listing.stderr is not None
        listing.stdout.close()
        assert (listing.wait(PATIENCE), listing.stderr.read()) == (0, "")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory whose name is short: a path of a unix socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="lt-") as directory:
        yield Path(directory)


def demo(path: Path, *words: str) -> "subprocess.Popen[str]":
    """The demo without a named server, in a directory of its own."""
    own = {"PATH": f"{path}:/usr/bin:/bin", "TMPDIR": str(path)}
    return subprocess.Popen([*RUST, "demo", "--seconds", *words], env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_demo_fights_on_the_server_that_is_named(server: RealServer):
    fought = ran(server, "demo", "--seconds", "1")
    assert (fought.returncode, fought.stderr) == (0, "") and fought.stdout.startswith(f'They fight for "sweetroll" on {server.url}')
    assert "no two at the same time, and fences only rose" in fought.stdout


def test_the_demo_starts_a_server_that_is_on_path_and_leaves_nothing_behind(server: RealServer, place: Path):
    (place / "redis-server").symlink_to(server.binary.path)
    with demo(place, "20") as fighting:
        assert fighting.stdout is not None
        first = fighting.stdout.readline()
        assert "unix://" in first and list(place.glob("locktender-demo-*"))
        assert "takes it" in fighting.stdout.readline()
        fighting.send_signal(signal.SIGINT)
        rest, _ = fighting.communicate(timeout=PATIENCE)
    assert fighting.returncode == 0 and "no two at the same time" in rest
    assert not list(place.glob("locktender-demo-*"))


def test_a_demo_that_is_killed_takes_its_server_with_it(server: RealServer, place: Path):
    (place / "redis-server").symlink_to(server.binary.path)
    with demo(place, "20") as fighting:
        assert fighting.stdout is not None and "unix://" in fighting.stdout.readline()
        (socket,) = place.glob("locktender-demo-*/server.sock")
        fighting.kill()
    until(lambda: not answers(socket))


def answers(socket: Path) -> bool:
    with suppress(OSError), closing(sockets.socket(sockets.AF_UNIX)) as connection:
        connection.connect(str(socket))
        return True
    return False
