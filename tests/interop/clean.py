"""Clean systems: no compiler, no Rust and no checkout, as users have them."""

import os
import shutil
import subprocess
from pathlib import Path

from support.checkout import ROOT

# What installing and running needs. Everything else on this machine can't be found.
PROGRAMS = ("sh", "env", "node", "rm", "cat", "mkdir", "sleep", "ps", "kill", "getent", "ldd")
FORBIDDEN = ("cargo", "rustc", "cc", "gcc", "clang", "make", "python3-config")


class Clean:
    """A directory with nothing of the project but the tests, and a PATH with nothing to build with."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.path = place / "bin"
        self.path.mkdir(parents=True)
        for program in PROGRAMS:
            if found := shutil.which(program):
                (self.path / program).symlink_to(Path(found).resolve() if program != "node" else found)
        assert not any(shutil.which(program, path=str(self.path)) for program in FORBIDDEN)
        # Node's tests may be compiling types there meanwhile.
        ignored = shutil.ignore_patterns("model", "bench", "rust", "__pycache__", "compiled-*")
        shutil.copytree(ROOT / "tests", place / "tests", ignore=ignored)
        (place / ".venv").symlink_to(ROOT / ".venv")

    def run(self, *command: object, **environment: str) -> str:
        """Runs a command here; it has to succeed. Gives its output."""
        kept = {name: os.environ[name] for name in ("HOME", "LANG", "LOCKTENDER_TEST_SERVER") if name in os.environ}
        process = subprocess.run(
            [str(word) for word in command],
            cwd=self.place,
            env={**kept, "PATH": str(self.path), **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        assert process.returncode == 0, f"{command} ended with {process.returncode}:\n{process.stdout[-4000:]}"
        return process.stdout
