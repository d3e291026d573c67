"""The command `locktender hold`: a lock for several commands of a script."""

import json
import shutil
import signal
import subprocess

import pytest
from commands import RUST, begun, environment, ran, running
from locktender import Client
from support.observe import PATIENCE, until
from support.server import RealServer


def test_it_holds_the_lock_until_its_input_ends(server: RealServer, name: str, program: list[str]):
    with running(server, "hold", "--ttl", "1s", name, program=program) as process:
        fence = int(begun(process))
        assert server.command("EXISTS", name) == 1 and ran(server, "run", "-n", name, "--", "true").returncode == 75
        remains = [server.command("PTTL", name)]

        def is_renewed() -> bool:
            remains.append(server.command("PTTL", name))
            return remains[-1] > remains[-2]

        until(is_renewed)
        out, errors = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out, errors) == (0, "", "")
    assert server.command("EXISTS", name) == 0
    with running(server, "hold", "--json", name, program=program) as process:
        line = json.loads(begun(process))
        assert line["name"] == name and line["fence"] > fence and line["owner"] == server.holder(name)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_holds_the_lock_until_a_signal_comes(server: RealServer, name: str, number: signal.Signals):
    # As `&` in a script gives it.
    with running(server, "hold", name, stdin=subprocess.DEVNULL) as process:
        begun(process)
        process.send_signal(number)
        assert process.wait(PATIENCE) == -number
    assert server.command("EXISTS", name) == 0


def test_it_says_that_the_lock_is_busy_and_that_it_was_lost(server: RealServer, name: str):
    with Client(server.url) as client, client.lock(name, ttl=60):
        busy = ran(server, "hold", "-n", name)
        assert busy.returncode == 75 and busy.stdout == "" and "is held by" in busy.stderr
    with running(server, "hold", "--ttl", "1s", name) as process:
        begun(process)
        server.command("DEL", name)
        assert process.wait(PATIENCE) == 79
        assert process.stderr is not None and "was lost" in process.stderr.read()


def test_the_script_of_the_docs_works(server: RealServer, name: str):
    if not shutil.which("bash"):
        pytest.skip("there is no bash")
    script = f"""
        coproc HOLD {{ {RUST[0]} hold {name}; }}
        hold=$HOLD_PID
        read -r fence <&"${{HOLD[0]}}" || exit 9
        {RUST[0]} run -n {name} -- true; echo "busy $? $fence"
        exec {{HOLD[1]}}>&-
        wait $hold; echo "ended $?"
        {RUST[0]} run -n {name} -- true; echo "free $?"
    """
    done = subprocess.run(["bash", "-c", script], env=environment(server), capture_output=True, text=True, timeout=PATIENCE)
    words = [line.split()[:2] for line in done.stdout.splitlines()]
    assert words == [["busy", "75"], ["ended", "0"], ["free", "0"]], done
