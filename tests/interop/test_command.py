"""The command `locktender`: what users of flock and cron expect of it, with real signals, terminals and servers."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import commands
import pytest
from commands import RUST, STUBBORN, begun, environment, is_alive
from locktender import Client
from support.observe import PATIENCE, until
from support.server import RealServer, free_port


def ran(server: RealServer, *words: str, program: list[str] = RUST) -> "subprocess.CompletedProcess[str]":
    """`locktender run`, ended."""
    return commands.ran(server, "run", *words, program=program)


def running(
    server: RealServer, *words: str, program: list[str] = RUST, **options: object
) -> "AbstractContextManager[subprocess.Popen[str]]":
    """`locktender run`, whose command writes a line when it has begun."""
    return commands.running(server, "run", *words, program=program, **options)


def test_the_exit_code_is_the_command_s_and_nothing_else_is_written(server: RealServer, name: str, program: list[str]):
    done = ran(server, name, "--", "sh", "-c", "echo out; echo err >&2; exit 3", program=program)
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    assert server.command("EXISTS", name) == 0
    done = ran(server, name, "--", "true", program=program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert ran(server, name, "--", "sh", "-c", "kill -9 $$", program=program).returncode == 128 + 9
    # A real-time signal.
    assert ran(server, name, "--", "sh", "-c", "kill -37 $$", program=program).returncode == 128 + 37


def test_who_finds_it_busy_says_who_holds_it(server: RealServer, name: str, program: list[str]):
    with Client(server.url, app="billing") as client, client.lock(name, ttl=60):
        for words, code in ((["-n"], 75), (["-w", "0.01"], 75), (["-n", "-E", "1"], 1)):
            done = ran(server, *words, name, "--", "echo", "never", program=program)
            assert (done.returncode, done.stdout) == (code, "")
            assert done.stderr.startswith(f'locktender: lock "{name}"') and "app=billing" in done.stderr
        assert ran(server, "-q", "-n", name, "--", "true", program=program).stderr == ""
        # As in a crontab: busy is as good as done.
        done = ran(server, "-n", "-E", "0", name, "--", "echo", "never", program=program)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert "is held by" in ran(server, "-v", "-n", "-E", "0", name, "--", "true", program=program).stderr


def test_each_mistake_has_its_code(server: RealServer, name: str, tmp_path: Path):
    server.command("RPUSH", f"{name}:list", 1)
    nowhere = f"redis://127.0.0.1:{free_port()}"
    file = tmp_path / "file"
    file.touch()
    for words, code, said in (
        ([name], 64, "COMMAND"),
        (["--ttl", "5 apples", name, "--", "true"], 64, "500ms"),
        (["--ttl", "0.001", name, "--", "true"], 64, "ttl"),
        (["--kill-after", "4", "--ttl", "5", name, "--", "true"], 64, "--kill-after"),
        (["-n", "-w", "1", name, "--", "true"], 64, "cannot be used with"),
        (["a}b", "--", "true"], 64, "a}b"),
        (["--server", "http://x", name, "--", "true"], 64, "redis://"),
        (["-n", "--server", nowhere, name, "--", "true"], 69, "Connection refused"),
        ([f"{name}:list", "--", "true"], 78, "list"),
        ([name, "--", str(file)], 126, "Permission denied"),
        ([name, "--", "no-such-command"], 127, "no-such-command"),
        ([name, "--", ""], 127, "find"),
        # As flock takes it.
        ([name, "-c", "true"], 64, "unexpected argument '-c'"),
        ([name, "true"], 64, "-- COMMAND"),
        (["--ttl", "300ms", name, "--", "true"], 64, "--ttl: leaves no time to end the command: 334 ms are the least"),
        ([f"{name}}}", "--", "true"], 64, "a hash, as of sha256sum, makes a name"),
    ):
        done = ran(server, *words)
        assert (done.returncode, done.stdout) == (code, "") and said in done.stderr, (words, done)
        assert "panicked" not in done.stderr
    assert server.command("EXISTS", name) == 0
    without = {name: value for name, value in os.environ.items() if name != "LOCKTENDER_URL"}
    done = subprocess.run([*RUST, "run", name, "--", "true"], env=without, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 64 and "LOCKTENDER_URL" in done.stderr
    done = subprocess.run([*RUST, "run", name, "--", "true"], env={**without, "LOCKTENDER_URL": b"redis://\xff"}, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 64 and "LOCKTENDER_URL is not UTF-8" in done.stderr


def test_a_password_and_a_hostile_name_are_not_shown_as_they_are(server: RealServer, name: str):
    done = ran(server, "-n", "--server", f"redis://me:secret@127.0.0.1:{free_port()}", f"{name}\x1b[31m\n", "--", "true")
    assert done.returncode == 69 and "secret" not in done.stderr
    assert done.stderr.count("\n") == 1 and "\x1b" not in done.stderr


@pytest.mark.parametrize("inner", [["run"], ["job"], ["cron-job", "--every", "24h", "--on-overlap", "wait", "-E", "75"], ["lead"], ["hold"], ["wait"]], ids=lambda words: words[0])
def test_one_that_would_wait_for_itself_says_so(server: RealServer, name: str, inner: list[str]):
    command = [*RUST, *inner, name, *([] if inner[0] in ("hold", "wait") else ["--", "true"])]
    done = ran(server, name, "--", *command)
    assert (done.returncode, done.stdout) == (75, "")
    assert "it would wait for itself" in done.stderr
    done = commands.ran(server, "job", f"{name}:job", "--", *RUST, "wait", "--done", f"{name}:job")
    assert done.returncode == 75 and "it would wait for itself" in done.stderr


def test_the_command_knows_its_lock(server: RealServer, name: str):
    show = "echo $LOCKTENDER_NAME; echo $LOCKTENDER_FENCE; echo $LOCKTENDER_OWNER; echo $LOCKTENDER_VALID_UNTIL"
    before = time.time()
    with running(server, "--ttl", "30s", name, "--", "sh", "-c", f"{show}; cat") as process:
        assert process.stdout is not None
        shown = [begun(process) for _ in range(4)]
        assert shown[0] == name
        assert shown[2] == server.holder(name)
        assert before + 29 < int(shown[3]) + 1 and int(shown[3]) <= time.time() + 30
        process.communicate(timeout=PATIENCE)
    second = ran(server, name, "--", "sh", "-c", "echo $LOCKTENDER_FENCE")
    assert int(second.stdout) > int(shown[1])


def test_arguments_reach_the_command_as_they_are(server: RealServer, name: str, program: list[str]):
    words = [*program, "run", name, "--", "printf", "%s|", b"caf\xe9", "é \ufffd", ""]
    done = subprocess.run(words, env=environment(server), capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (0, b"caf\xe9|" + "é \ufffd||".encode())


def test_it_says_more_on_demand_also_as_json(server: RealServer, name: str):
    done = ran(server, "-v", name, "--", "true")
    assert [line.split()[1] for line in done.stderr.splitlines()] == ["got", f'"{name}":']
    lines = [json.loads(line) for line in ran(server, "-v", "--json", name, "--", "true").stderr.splitlines()]
    assert [line["code"] for line in lines] == ["acquired", "released"]
    assert isinstance(lines[0]["fence"], int)
    with Client(server.url) as client, client.lock(name, ttl=60):
        [line] = [json.loads(line) for line in ran(server, "-n", "--json", name, "--", "true").stderr.splitlines()]
    assert (line["level"], line["code"]) == ("error", "ACQUIRE_TIMEOUT")


def test_signals_reach_the_command(server: RealServer, name: str, program: list[str]):
    for number, trap in ((signal.SIGTERM, "TERM"), (signal.SIGINT, "INT"), (signal.SIGHUP, "HUP"), (signal.SIGUSR1, "USR1")):
        script = f"trap 'exit 7' {trap}; echo begun; while :; do sleep 0.02; done"
        with running(server, name, "--", "sh", "-c", script, program=program, start_new_session=True) as process:
            assert begun(process) == "begun"
            process.send_signal(number)
            # Its shell may say what became of `sleep`, which gets the signal, too.
            out, _ = process.communicate(timeout=PATIENCE)
            assert (out, process.returncode) == ("", 7), trap
        assert server.command("EXISTS", name) == 0


def test_a_signal_that_the_command_dies_of_is_the_end_of_both(server: RealServer, name: str, program: list[str]):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        with running(server, name, "--", "sh", "-c", "echo begun; exec sleep 60", program=program) as process:
            assert begun(process) == "begun"
            process.send_signal(number)
            # For systemd a unit that dies of SIGTERM was stopped, and one with exit code 143 has failed.
            assert process.wait(PATIENCE) == -number
        assert server.command("EXISTS", name) == 0
    # Nobody asked this one to end.
    assert ran(server, name, "--", "sh", "-c", "kill $$", program=program).returncode == 128 + signal.SIGTERM


def test_xargs_sees_that_a_command_was_interrupted(server: RealServer, name: str, program: list[str]):
    for wrapper in ([], [*program, "run", name, "--"]):
        line = ["xargs", "-n1", *wrapper, "sh", "-c", "echo begun; kill -INT $$", "sh"]
        done = subprocess.run(line, input="1 2", env=environment(server), capture_output=True, text=True, timeout=PATIENCE)
        assert (done.returncode, done.stdout) == (125, "begun\n")


def test_a_signal_ends_the_wait(server: RealServer, name: str, program: list[str]):
    with Client(server.url) as client, client.lock(name, ttl=60):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with running(server, name, "--", "true", program=program, start_new_session=True) as process:
                until(lambda: server.line(name), PATIENCE)
                process.send_signal(signal.SIGWINCH)
                process.send_signal(number)
                out, err = process.communicate(timeout=PATIENCE)
                assert (out, err, process.returncode) == ("", "", -number)
            until(lambda: not server.line(name), PATIENCE)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing ends a child with its parent")
def test_the_command_dies_with_a_killed_wrapper(server: RealServer, name: str, program: list[str]):
    with running(server, "--ttl", "1", name, "--", "sh", "-c", "echo $$; exec sleep 60", program=program) as process:
        pid = int(begun(process))
        process.kill()
        until(lambda: not is_alive(pid), PATIENCE)
    assert ran(server, name, "--", "echo", "next").stdout == "next\n"


def test_who_ignores_nohup_s_signal_goes_on(server: RealServer, name: str):
    ignoring = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *RUST]
    with running(server, name, "--", "sh", "-c", "echo begun; cat", program=ignoring) as process:
        assert begun(process) == "begun"
        process.send_signal(signal.SIGHUP)
        out, _ = process.communicate("still here", timeout=PATIENCE)
        assert (out, process.returncode) == ("still here", 0)


def test_no_two_commands_run_when_the_server_is_silent_for_longer_than_the_ttl(name: str, tmp_path: Path):
    guarded = tmp_path / "guarded"
    stubborn = f"trap '' TERM; echo begun; while :; do echo first >>{guarded}; sleep 0.01; done"
    second = f"echo second >>{guarded}; sleep 0.3; echo second >>{guarded}"
    with (
        RealServer() as server,
        running(server, "--ttl", "1", name, "--", "sh", "-c", stubborn) as holder,
    ):
        assert begun(holder) == "begun"
        with running(server, "--ttl", "1", name, "--", "sh", "-c", second) as waiter:
            until(lambda: server.line(name), PATIENCE)
            server.pause()
            _, err = holder.communicate(timeout=PATIENCE)
            assert holder.returncode == 79 and "ends in" in err, err
            server.resume()
            assert waiter.wait(PATIENCE) == 0
    written = guarded.read_text().split()
    assert written[0] == "first" and written[-2:] == ["second", "second"] and "second" not in written[:-2]


def test_a_lock_that_is_taken_away_ends_the_command_or_is_told(server: RealServer, name: str):
    with running(server, "--ttl", "1", "--kill-after", "0.2", name, "--", "sh", "-c", STUBBORN) as process:
        assert begun(process) == "begun"
        server.command("DEL", name)
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 79 and "was lost" in err, err
    with running(server, "--ttl", "1", "--on-lost", "warn", name, "--", "sh", "-c", "echo begun; cat; exit 5") as process:
        assert begun(process) == "begun"
        server.command("DEL", name)
        assert process.stderr is not None and "was lost" in process.stderr.readline()
        out, err = process.communicate("work goes on", timeout=PATIENCE)
        assert (out, err, process.returncode) == ("work goes on", "", 5)


def test_what_the_command_started_ends_with_it_when_the_lock_is_lost(server: RealServer, name: str, tmp_path: Path):
    guarded = tmp_path / "guarded"
    left = f"trap '' TERM; while :; do echo on >>{guarded}; sleep 0.01; done"
    with running(server, "--ttl", "1", "--kill-after", "0.3", name, "--", "sh", "-c", f"({left}) & echo begun; wait") as process:
        assert begun(process) == "begun"
        until(guarded.exists, PATIENCE)
        server.command("DEL", name)
        assert process.wait(PATIENCE) == 79
        size = guarded.stat().st_size
    ran(server, name, "--", "sleep", "0.1")
    assert guarded.stat().st_size == size


def test_a_prefix_and_a_fair_wait(server: RealServer, name: str):
    with running(server, "--prefix", "app:", "--fair", name, "--", "sh", "-c", "echo begun; cat") as process:
        assert begun(process) == "begun"
        assert server.command("EXISTS", f"app:{name}") == 1
        process.communicate(timeout=PATIENCE)


def test_several_servers_are_a_quorum(name: str):
    with ExitStack() as stack:
        servers = [stack.enter_context(RealServer()) for _ in range(3)]
        with Client([server.url for server in servers]) as client:
            client.initialize_quorum()
        servers[2].kill()
        words = [word for server in servers for word in ("--server", server.url)]
        with running(servers[0], *words, name, "--", "sh", "-c", "echo begun; cat") as process:
            assert begun(process) == "begun"
            assert [server.command("EXISTS", name) for server in servers[:2]] == [1, 1]
            process.communicate(timeout=PATIENCE)
        servers[1].kill()
        assert ran(servers[0], "-n", *words, name, "--", "true").returncode == 69


def test_max_hold_and_min_hold(server: RealServer, name: str):
    done = ran(server, "--max-hold", "0.6", name, "--", "sh", "-c", "trap 'echo cleaned; exit 0' TERM; while :; do sleep 0.02; done")
    assert (done.returncode, done.stdout) == (79, "cleaned\n")
    assert "600ms" in done.stderr
    assert ran(server, "--min-hold", "60", name, "--", "true").returncode == 0
    done = ran(server, "-n", name, "--", "true")
    assert done.returncode == 75 and server.command("PTTL", name) > 50_000
    server.command("DEL", name)


def test_help_and_version_end_well_also_when_nobody_reads(program: list[str]):
    for words in (["--help"], ["run", "--help"], ["--version"]):
        done = subprocess.run([*program, *words], capture_output=True, text=True, timeout=PATIENCE)
        assert (done.returncode, done.stderr) == (0, "") and "locktender" in done.stdout
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "w") as nobody:
            done = subprocess.run([*program, *words], stdout=nobody, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
        assert (done.returncode, done.stderr) == (0, "")


def test_several_hold_a_lock_as_readers_or_with_permits(server: RealServer, name: str):
    shell = ["sh", "-c", "echo begun; cat"]
    for several, beside, refused in [
        (["--read"], ["--read"], []),
        (["--permits", "2"], ["--permits", "2"], ["--read"]),
        (["--permits", "1"], ["--permits", "2"], ["--permits", "1"]),
    ]:
        with running(server, *several, name, "--", *shell) as process:
            assert begun(process) == "begun"
            assert ran(server, "-n", *beside, name, "--", "true").returncode == 0
            assert ran(server, "-n", *refused, name, "--", "true").returncode == 75
            process.communicate(timeout=PATIENCE)
        assert server.command("EXISTS", name) == 0
    # Its own lock, but not the only holder's.
    inner = [*RUST, "run", "-n", "--permits", "2", name, "--", "true"]
    assert ran(server, "--permits", "2", name, "--", *inner).returncode == 0
    for wrong in (["--permits", "0"], ["--permits", "10001"], ["--read", "--permits", "2"], ["--read", "--min-hold", "5"]):
        assert ran(server, *wrong, name, "--", "true").returncode == 64, wrong


def test_several_locks_at_once_or_none(server: RealServer, name: str, program: list[str]):
    names = [f"{name}:a", f"{name}:b"]
    shell = ["sh", "-c", 'echo "$LOCKTENDER_NAME" $LOCKTENDER_FENCE; cat']
    with Client(server.url) as client:
        with running(server, *names, "--", *shell, program=program) as process:
            shown, first, second = begun(process).rsplit(" ", 2)
            assert shown == ", ".join(names) and [client.lock(each).inspect().fence for each in names] == [int(first), int(second)]
            assert ran(server, "-n", names[1], "--", "true", program=program).returncode == 75
            process.communicate(timeout=PATIENCE)
        with client.lock(names[1]):
            done = ran(server, "-n", *names, "--", "true", program=program)
            assert done.returncode == 75 and done.stderr.startswith(f'locktender: lock "{names[1]}"')
            assert server.command("EXISTS", names[0]) == 0
        with running(server, *names, "--", "sh", "-c", "echo begun; sleep 60", program=program) as process:
            assert begun(process) == "begun"
            client.lock(names[0]).force_release()
            assert process.wait(PATIENCE) == 79 and "was lost" in process.stderr.read()  # type: ignore[union-attr]
        with client.lock(names[0]):
            inner = [*program, "run", *names, "--", "true"]
            done = ran(server, names[1], "--", *inner, program=program)
            assert done.returncode == 75 and "would wait for itself" in done.stderr
    assert server.command("EXISTS", *names) == 0
    for wrong in (["--read"], ["--permits", "2"], ["--min-hold", "5"], ["--fair"]):
        assert ran(server, *wrong, *names, "--", "true", program=program).returncode == 64, wrong
    assert ran(server, names[0], names[0], "--", "true", program=program).returncode == 64
