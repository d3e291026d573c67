"""The checkout: its paths, and commands that run in it."""

import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin/python"

# In the environment: the long tests run too, and others have more cases.
LONG = "LOCKTENDER_LONG"


class Failed(Exception):
    """A step did not succeed; its output has said why."""


def heading(text):
    print(f"\n== {text}", flush=True)


def run(*command, output=None, red=0, **environment):
    """Runs a command in the checkout, its output shown or in a file; whether it succeeded.

    It ends with `red` if it is a test runner and tests failed. Any other end than success is `Failed`.
    """
    command = [str(part) for part in command]
    errors = None if output is None else subprocess.STDOUT
    try:
        env = {**os.environ, **environment}
        code = subprocess.run(command, cwd=ROOT, env=env, stdout=output, stderr=errors).returncode
    except OSError as error:
        raise Failed(f"{command[0]}: {error}") from None
    if code not in (0, red):
        raise Failed(f"{' '.join(command)} ended with {code}")
    return code == 0


def target_directory():
    """Where cargo builds."""
    metadata = subprocess.run(
        ["cargo", "metadata", "--no-deps", "--format-version", "1"], cwd=ROOT, capture_output=True, text=True
    )
    return Path(json.loads(metadata.stdout)["target_directory"])


def build_directory():
    """Where the programs are that cargo built: those for a named target have a directory of their own."""
    return target_directory() / os.environ.get("CARGO_BUILD_TARGET", "") / "debug"
