"""The command `locktender` before a program that starts others in the background, and as process 1 of a container."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from commands import RUST, environment, is_alive, ran, running
from locktender import Client
from support.observe import PATIENCE, until
from support.server import RealServer

SUBCOMMANDS = (["run"], ["job"], ["cron-job", "--every", "24h"], ["lead"])


class Daemon:
    """A program in a session of its own, and the script that starts it and ends with exit code 0."""

    def __init__(self, folder: Path, body: str = "exec sleep 60") -> None:
        self._file = folder / "daemon"
        inner = folder / "inner"
        inner.write_text(f"echo $$ >{self._file}.new; mv {self._file}.new {self._file}\n{body}\n")
        started = f"setsid sh {inner} </dev/null >/dev/null 2>&1 &"
        self.script = ["sh", "-c", f"{started} while [ ! -s {self._file} ]; do sleep 0.01; done; echo begun"]

    @property
    def pid(self) -> int:
        until(self._file.exists)
        return int(self._file.read_text())

    def end(self) -> None:
        if self._file.exists():
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


@contextmanager
def daemon(folder: Path, body: str = "exec sleep 60") -> Iterator[Daemon]:
    made = Daemon(folder, body)
    try:
        yield made
    finally:
        made.end()


@pytest.mark.parametrize("subcommand", SUBCOMMANDS, ids=lambda words: words[0])
def test_a_daemon_that_a_command_leaves_behind_is_said_to_go_on_without_the_lock(
    server: RealServer, name: str, subcommand: list[str], tmp_path: Path, program: list[str]
):
    with daemon(tmp_path) as left:
        done = ran(server, *subcommand, name, "--", *left.script, program=program)
        said = f"locktender: a process that it started continues without the lock (pid {left.pid})\n"
        assert (done.returncode, done.stdout, done.stderr) == (0, "begun\n", said)
        assert is_alive(left.pid)
        assert server.command("EXISTS", name) == 0
    if subcommand == ["job"]:
        assert ran(server, "job", name, "--", "false").stdout == "begun\n"


def test_a_command_whose_children_end_a_moment_later_leaves_nothing_behind(server: RealServer, name: str):
    # As bash leaves `tee` behind after `> >(tee file)`.
    done = ran(server, "run", name, "--", "sh", "-c", "(sleep 0.02; echo child) & exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, "child\n", "")


@pytest.mark.parametrize("subcommand", SUBCOMMANDS, ids=lambda words: words[0])
def test_with_wait_children_the_lock_is_kept_until_all_have_ended(
    server: RealServer, name: str, subcommand: list[str], tmp_path: Path
):
    words = [*subcommand, "--wait-children", "--ttl", "1s"]
    with daemon(tmp_path) as left, running(server, *words, name, "--", *left.script, stdout=subprocess.DEVNULL) as process:
        assert process.stderr is not None
        # The command has ended.
        until(lambda: f"{process.pid}" == Path(f"/proc/{left.pid}/stat").read_text().rsplit(")")[-1].split()[1])
        lasts = server.command("PTTL", name)
        # It is renewed.
        until(lambda: server.command("PTTL", name) > lasts)
        assert process.poll() is None
        left.end()
        assert (process.wait(PATIENCE), process.stderr.read()) == (0, "")
        assert server.command("EXISTS", name) == 0


def test_with_wait_children_signals_reach_all_of_them(server: RealServer, name: str, tmp_path: Path):
    with daemon(tmp_path) as left, running(server, "run", "--wait-children", name, "--", *left.script) as process:
        pid = left.pid
        until(lambda: f"{process.pid}" == Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[1])
        process.terminate()
        # The command ended by itself, and that counts.
        assert process.wait(PATIENCE) == 0
        assert not is_alive(pid)


def test_with_wait_children_all_of_them_end_with_the_lock(server: RealServer, name: str, tmp_path: Path):
    stubborn = "trap '' TERM; while :; do sleep 0.02; done"
    words = ["run", "--wait-children", "--ttl", "1s", name]
    with daemon(tmp_path, stubborn) as left, running(server, *words, "--", *left.script) as process:
        pid = left.pid
        server.command("DEL", name)
        assert process.wait(PATIENCE) == 79
        until(lambda: not is_alive(pid))


@pytest.fixture
def first(tmp_path: Path) -> list[str]:
    """Starts a program as process 1."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("a container needs root, and unshare")
    return ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]


def test_as_process_1_it_leaves_no_zombies(server: RealServer, name: str, first: list[str]):
    orphans = "for i in 1 2 3 4 5; do (sh -c 'sleep 0.05 & exit 0' &); done; sleep 0.01"
    ends = "while ls -l /proc/*/exe 2>/dev/null | grep -q sleep$; do sleep 0.01; done"
    count = "grep -l 'State:.Z' /proc/[0-9]*/status | wc -l"
    script = f"{orphans}; {ends}; n=1; while [ $n != 0 ]; do n=$({count}); done; exit 5"
    done = subprocess.run(
        [*first, *RUST, "run", name, "--", "sh", "-c", script], env=environment(server), capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stderr) == (5, "")


@pytest.mark.parametrize("words", [["wait"], ["watch"], ["watch", "--web"]], ids=" ".join)
def test_as_process_1_an_operator_s_subcommand_ends_by_a_signal(server: RealServer, name: str, first: list[str], words: list[str]):
    with Client(server.url) as client, client.lock(name, ttl=60):
        for number in (signal.SIGTERM, signal.SIGINT):
            with running(server, *words, name, program=[*first, *RUST]) as process:
                inner = Path(f"/proc/{process.pid}/task/{process.pid}/children")
                until(lambda: inner.read_text() != "")
                pid = int(inner.read_text())
                # It has begun to hear signals.
                until(lambda: int(Path(f"/proc/{pid}/status").read_text().split("SigCgt:")[1].split()[0], 16) & 1 << number - 1)
                os.kill(pid, number)
                assert process.wait(PATIENCE) == 128 + number
