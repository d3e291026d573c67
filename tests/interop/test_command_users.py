"""The command `locktender` before a program that changes its user, as `sudo` does: it can't be ended, and that is said."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import RUST, begun, running
from support.observe import PATIENCE
from support.server import RealServer

NOBODY = {"user": 65534, "group": 65534, "extra_groups": [], "cwd": "/"}

# It goes on until a line comes, whatever signals are sent.
SUDOED = """
#include <stdio.h>
#include <unistd.h>
int main(void) {
    if (setresuid(0, 0, 0)) return 2;
    puts("begun");
    fflush(stdout);
    getchar();
    puts("worked on");
    return 3;
}
"""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """With locktender, and a program that becomes root, both for any user."""
    if os.geteuid() != 0 or not shutil.which("cc"):
        pytest.skip("a program that changes its user is made by root, with a C compiler")
    with tempfile.TemporaryDirectory(prefix="locktender-users-") as name:
        made = Path(name)
        made.chmod(0o755)
        shutil.copy(RUST[0], made / "locktender")
        subprocess.run(["cc", "-D_GNU_SOURCE", "-x", "c", "-", "-o", made / "sudoed"], input=SUDOED.encode(), check=True, timeout=PATIENCE)
        (made / "sudoed").chmod(0o4755)
        if subprocess.run([made / "sudoed"], stdin=subprocess.DEVNULL, capture_output=True, **NOBODY).returncode != 3:  # type: ignore[call-overload]
            pytest.skip("the folder for temporary files ignores setuid")
        yield made


def said(process: "subprocess.Popen[str]", text: str) -> str:
    """Reads messages up to this one."""
    assert process.stderr is not None
    lines = ""
    while text not in lines:
        line = process.stderr.readline()
        assert line, lines
        lines += line
    return lines


@pytest.mark.parametrize("subcommand", ["run", "job", "lead"])
def test_a_lost_lock_of_a_command_of_another_user_is_not_said_to_have_ended_it(server: RealServer, name: str, folder: Path, subcommand: str):
    words = [subcommand, "-v", "--ttl", "1", "--kill-after", "0.2", name, "--", str(folder / "sudoed")]
    with running(server, *words, program=[str(folder / "locktender")], **NOBODY) as process:
        assert begun(process) == "begun"
        server.command("DEL", name)
        before = said(process, "runs as another user")
        # The next one gets the lock, and this command works.
        assert server.command("EXISTS", name) == 0
        assert process.poll() is None
        out, err = process.communicate("\n", timeout=PATIENCE)
        assert (out, process.returncode) == ("worked on\n", 81)
        assert "SIGKILL" not in before + err and "another user" not in err


def test_what_a_command_leaves_behind_as_another_user_is_told(server: RealServer, name: str, folder: Path):
    script = f"{folder / 'sudoed'}; echo never"
    words = ["run", "--ttl", "1", "--kill-after", "0.2", name, "--", "sh", "-c", script]
    with running(server, *words, program=[str(folder / "locktender")], **NOBODY) as process:
        assert begun(process) == "begun"
        server.command("DEL", name)
        assert process.wait(PATIENCE) == 81
        out, err = process.communicate("\n", timeout=PATIENCE)
        assert out == "worked on\n" and err.count("runs as another user") == 1


def test_a_signal_that_does_not_reach_a_command_is_told(server: RealServer, name: str, folder: Path):
    with running(server, "run", name, "--", str(folder / "sudoed"), program=[str(folder / "locktender")], **NOBODY) as process:
        assert begun(process) == "begun"
        for _ in range(2):
            process.terminate()
        said(process, "runs as another user")
        # It holds the lock until the command has ended.
        assert server.command("EXISTS", name) == 1
        out, err = process.communicate("\n", timeout=PATIENCE)
        assert (out, err, process.returncode) == ("worked on\n", "", 3)
    assert server.command("EXISTS", name) == 0
