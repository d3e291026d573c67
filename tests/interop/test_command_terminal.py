"""The command `locktender` in a terminal: keys do to scripts, loops and make what they do with `flock`, and without a wrapper."""

import fcntl
import os
import shutil
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from commands import PROGRAMS, RUST, environment, is_alive
from locktender import Client
from support.observe import PATIENCE, until
from support.server import RealServer
from terminal import Terminal

CTRL_C, CTRL_Z = "\x03", "\x1a"

# A step that goes on until it is ended. What is typed at a prompt is shown, too, and must not look like it.
STEP = """sh -c 'echo be""gun; exec sleep 60'"""


class Wrapper(NamedTuple):
    """What stands before a command in a line of a shell, with locks that no other test uses."""

    kind: str
    name: str
    path: Path

    def line(self, command: str, *, lock: int = 1) -> str:
        match self.kind:
            case "bare":
                return command
            case "flock":
                return f"flock {self.path / str(lock)} {command}"
            case kind:
                return f"{' '.join(PROGRAMS[kind])} run {self.name}:{lock} -- {command}"


@pytest.fixture(params=["bare", "flock", *PROGRAMS])
def wrapper(request: pytest.FixtureRequest, name: str, tmp_path: Path) -> Wrapper:
    if request.param == "flock" and not shutil.which("flock"):
        pytest.skip("there is no flock")
    return Wrapper(request.param, name, tmp_path)


def script(server: RealServer, *lines: str) -> Terminal:
    """A script in a terminal."""
    return Terminal("bash", "-c", "\n".join(lines), env=environment(server))


def prompt(server: RealServer, *, shell: str = "bash") -> Terminal:
    """A shell at whose prompt a person types. bash loses letters now and then that are typed when Ctrl-Z has just stopped a job, also one
    without a wrapper: there it is another shell."""
    words = {"bash": ["--norc", "--noprofile"], "sh": []}[shell]
    env = {**environment(server), "PS1": "prompt$ ", "HISTFILE": "", "INPUTRC": "/dev/null", "TERM": "dumb", "ENV": ""}
    terminal = Terminal(shell, *words, "-i", env=env)
    terminal.shows("prompt$ ")
    return terminal


def in_background(terminal: Terminal, line: str) -> int:
    """Types a line that is to run in the background, and gives the process that the shell knows."""
    terminal.type(f'{line} & echo p""id $!\n')
    terminal.shows("pid ")
    return int(terminal.shows("\r\n"))


def is_stopped(pid: int) -> bool:
    return "\nState:\tT" in Path(f"/proc/{pid}/status").read_text()


def test_ctrl_c_ends_a_script_and_its_next_step_does_not_run(server: RealServer, wrapper: Wrapper):
    with script(server, wrapper.line(STEP), "echo next") as terminal:
        terminal.shows("begun")
        terminal.type(CTRL_C)
        assert terminal.ended() == -signal.SIGINT
        assert "next" not in terminal.shown
    assert server.command("EXISTS", f"{wrapper.name}:1") == 0


def test_ctrl_c_ends_a_script_also_when_the_command_has_read_what_was_typed(server: RealServer, wrapper: Wrapper):
    step = """sh -c 'read line; echo got $line; exec sleep 60'"""
    with script(server, wrapper.line(step), "echo next") as terminal:
        terminal.type("this\n")
        terminal.shows("got this")
        terminal.type(CTRL_C)
        assert terminal.ended() == -signal.SIGINT
        assert "next" not in terminal.shown


def test_ctrl_c_ends_a_loop_at_the_prompt(server: RealServer, wrapper: Wrapper):
    with prompt(server) as terminal:
        terminal.type(f"for i in 1 2 3; do {wrapper.line(STEP)}; done\n")
        terminal.shows("begun")
        terminal.type(CTRL_C)
        assert "begun" not in terminal.shows("prompt$ ")


def test_a_script_whose_command_takes_ctrl_c_for_itself_goes_on(server: RealServer, wrapper: Wrapper):
    if wrapper.kind == "flock":
        pytest.skip("it dies of the signal itself, and leaves the command behind")
    step = """sh -c 'trap "echo handled; exit 3" INT; echo begun; while :; do sleep 0.02; done'"""
    with script(server, wrapper.line(step), "echo code $?") as terminal:
        terminal.shows("begun")
        terminal.type(CTRL_C)
        terminal.shows("handled")
        terminal.shows("code 3")
        assert terminal.ended() == 0


def test_a_script_may_trap_ctrl_c(server: RealServer, wrapper: Wrapper):
    with script(server, "trap 'echo trapped' INT", wrapper.line(STEP), "echo next") as terminal:
        terminal.shows("begun")
        terminal.type(CTRL_C)
        terminal.shows("trapped")
        terminal.shows("next")
        assert terminal.ended() == 0


def test_ctrl_c_ends_all_recipes_of_make(server: RealServer, wrapper: Wrapper, tmp_path: Path):
    step = """sh -c 'echo begun $$$$; exec sleep 60'"""
    makefile = tmp_path / "Makefile"
    makefile.write_text("all: 1 2\n" + "".join(f"{n}:\n\t@{wrapper.line(step, lock=n)}\n" for n in (1, 2)))
    with Terminal("make", "-j2", "-f", str(makefile), env=environment(server)) as terminal:
        pids = []
        for _ in (1, 2):
            terminal.shows("begun ")
            pids.append(int(terminal.shows("\r\n")))
        terminal.type(CTRL_C)
        # make may hear of its recipes' end before it hears of Ctrl-C.
        assert terminal.ended() in (-signal.SIGINT, 2)
    until(lambda: not any(map(is_alive, pids)), PATIENCE)


@pytest.mark.parametrize("subcommand", ["run", "job", "lead", "flock"])
def test_ctrl_c_while_it_waits_for_the_lock_ends_the_script(server: RealServer, name: str, subcommand: str, tmp_path: Path):
    file = tmp_path / "lock"
    file.touch()
    with ExitStack() as stack:
        if subcommand == "flock":
            if not shutil.which("flock"):
                pytest.skip("there is no flock")
            fcntl.flock(stack.enter_context(file.open()), fcntl.LOCK_EX)
            line, inode = f"flock {file} echo never", f":{file.stat().st_ino} "

            def waits() -> bool:
                return any("->" in line and inode in line for line in Path("/proc/locks").read_text().splitlines())
        else:
            client = stack.enter_context(Client(server.url))
            stack.enter_context(client.lock(name, ttl=60))
            line = f"{RUST[0]} {subcommand} {name} -- echo never"

            def waits() -> bool:
                return bool(server.line(name))

        with script(server, line, "echo next") as terminal:
            until(waits, PATIENCE)
            terminal.type(CTRL_C)
            assert terminal.ended() == -signal.SIGINT
            assert "never" not in terminal.shown and "next" not in terminal.shown


def test_a_pager_reads_the_keyboard(server: RealServer, wrapper: Wrapper):
    pager = """sh -c 'read line; echo "page: $line"; read key </dev/tty; echo "key: $key"'"""
    with prompt(server) as terminal:
        command = """sh -c 'echo te""xt; exec sleep 60'"""
        terminal.type(f"{wrapper.line(command)} | {pager}\n")
        terminal.shows("page: text")
        terminal.type("q\n")
        assert "Stopped" not in terminal.shows("key: q")
        terminal.type(CTRL_C)
        terminal.shows("prompt$ ")


def test_ctrl_z_stops_a_script_also_when_the_command_has_the_terminal(server: RealServer, wrapper: Wrapper, tmp_path: Path):
    steps = tmp_path / "steps"
    steps.write_text(wrapper.line("""sh -c 'echo begun; read line; echo got $line; read line; echo then $line'""") + "\necho next\n")
    with prompt(server, shell="sh") as terminal:
        terminal.type(f"bash {steps}\n")
        terminal.shows("begun")
        terminal.type("one\n")
        terminal.shows("got one")
        terminal.type(CTRL_Z)
        terminal.shows("Stopped")
        terminal.shows("prompt$ ")
        terminal.is_the_shells()
        terminal.type("fg\n")
        terminal.shows(f"bash {steps}")
        terminal.type("two\n")
        terminal.shows("then two")
        terminal.shows("next")


def test_a_script_in_the_background_stops_when_its_command_reads(server: RealServer, wrapper: Wrapper, tmp_path: Path):
    steps = tmp_path / "steps"
    steps.write_text(wrapper.line("""sh -c 'read line; echo got $line'""") + "\n")
    with prompt(server, shell="sh") as terminal:
        pid = in_background(terminal, f"bash {steps}")
        until(lambda: is_stopped(pid), PATIENCE)
        terminal.type("fg\n")
        terminal.shows(str(steps))
        terminal.type("this\n")
        terminal.shows("got this")


def test_one_in_the_other_reads_stops_and_goes_on(server: RealServer, name: str):
    def line(lock: str, command: str) -> str:
        return f"{RUST[0]} run --ttl 60 {name}:{lock} -- {command}"

    with prompt(server, shell="sh") as terminal:
        terminal.type(line("outer", line("inner", """sh -c 'echo be""gun; cat'""")) + "\n")
        terminal.shows("begun")
        terminal.answers("cron-job")
        terminal.type(CTRL_Z)
        terminal.shows("Stopped")
        terminal.shows("prompt$ ")
        terminal.is_the_shells()
        terminal.type("fg\n")
        terminal.shows("cat")
        terminal.answers("again")
        terminal.type(CTRL_C)
        terminal.shows("prompt$ ")
    assert server.command("EXISTS", f"{name}:inner", f"{name}:outer") == 0


WRITER = """
import sys
with open(sys.argv[1], "ab", buffering=0) as file:
    print("begun", flush=True)
    while True:
        file.write(b".")
"""


@pytest.mark.parametrize("stopped_by", ["ctrl-z", "kill"])
def test_a_command_that_was_stopped_until_its_lock_was_over_does_nothing_more(server: RealServer, name: str, tmp_path: Path, stopped_by: str):
    written, writer = tmp_path / "written", tmp_path / "writer.py"
    writer.write_text(WRITER)
    line = f"{RUST[0]} run --ttl 0.5 {name} -- {sys.executable} {writer} {written}"
    with prompt(server, shell="sh") as terminal:
        # It would write in one of some rounds.
        for _ in range(5):
            if stopped_by == "ctrl-z":
                terminal.type(f"{line}\n")
                terminal.shows("begun")
                terminal.type(CTRL_Z)
                terminal.shows("Stopped")
                terminal.shows("prompt$ ")
            else:
                pid = in_background(terminal, f"{line} >/dev/null")
                size = written.stat().st_size if written.exists() else 0
                until(lambda size=size: written.exists() and written.stat().st_size > size, PATIENCE)
                # locktender alone.
                os.kill(pid, signal.SIGTSTP)
                until(lambda pid=pid: is_stopped(pid), PATIENCE)
            until(lambda: server.command("EXISTS", name) == 0, PATIENCE)
            size = written.stat().st_size
            terminal.type("fg; echo code $?\n")
            terminal.shows("was lost")
            terminal.shows("code 79")
            terminal.shows("prompt$ ")
            assert written.stat().st_size == size


def test_a_person_who_waits_sees_for_whom(server: RealServer, name: str):
    with Client(server.url, app="billing") as client, client.lock(name, ttl=60) as held:
        with script(server, f"{' '.join(PROGRAMS['rust'])} run {name} -- echo be''gun") as terminal:
            terminal.shows(f'locktender: waiting for "{name}", held by billing@')
            held.release()
            terminal.shows("begun")
            assert terminal.ended() == 0


def test_the_command_learns_the_size_of_the_terminal(server: RealServer, wrapper: Wrapper):
    step = """bash -c 'trap "echo resized; exit" WINCH; echo begun; while :; do sleep 0.02; done'"""
    with script(server, wrapper.line(step)) as terminal:
        terminal.shows("begun")
        terminal.has_size(40, 120)
        terminal.shows("resized")
        assert terminal.ended() == 0


def test_in_a_terminal_the_command_reads_and_ctrl_c_ends_it(server: RealServer, name: str, program: list[str]):
    script = "echo begun; read line; echo got $line; cat"
    for key, number in (("\x03", signal.SIGINT), ("\x1c", signal.SIGQUIT)):
        with Terminal(*program, "run", name, "--", "sh", "-c", script, env=environment(server)) as terminal:
            terminal.shows("begun")
            terminal.type("this\n")
            terminal.shows("got this")
            terminal.answers("more")
            terminal.type(key)
            assert terminal.ended() == -number
    assert server.command("EXISTS", name) == 0


def test_ctrl_z_stops_it_and_the_shell_continues_it(server: RealServer, name: str):
    with Terminal("sh", "-i", env={**environment(server), "PS1": "prompt$ ", "ENV": ""}) as terminal:
        terminal.type(f"{RUST[0]} run --ttl 60 {name} -- sh -c 'echo beg\"\"un; cat'\n")
        terminal.shows("begun")
        terminal.answers("cron-job")
        terminal.type("\x1a")
        terminal.shows("Stopped")
        terminal.type("fg\n")
        terminal.shows("cat")
        terminal.answers("again")
        terminal.type("\x04")
        terminal.shows("prompt$ ")
        terminal.type("exit 4\n")
        assert terminal.ended() == 4
    assert server.command("EXISTS", name) == 0


def test_a_script_has_the_terminal_again_and_a_command_behind_a_pipe_may_ask_for_it(server: RealServer, name: str):
    locktender = f"{RUST[0]} run {name} --"
    asks = "read line </dev/tty; echo got $line and $(cat)"
    script = f"{locktender} true; read first; echo $first is read; echo data | {locktender} sh -c '{asks}'; read last; echo $last is read"
    with Terminal("sh", "-c", script, env=environment(server)) as terminal:
        terminal.type("one\n")
        terminal.shows("one is read")
        terminal.type("two\n")
        terminal.shows("got two and data")
        terminal.type("three\n")
        terminal.shows("three is read")
        assert terminal.ended() == 0
