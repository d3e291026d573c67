"""Ends: it builds the crate with the lowest and the newest release of redis that its Cargo.toml allows.

    python3 tests/ends.py                    compile with each, in a copy of the workspace; Cargo.lock stays as it is
    python3 tests/ends.py test               and run the core's tests and those of its connections

Cargo.lock has the newest one, so all other tests run with it. Somebody whose program has another 1.x, from another crate,
gets the lowest that suits both. The registry is asked only for what cargo doesn't have yet.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Shared with the workspace: what doesn't depend on the crate is compiled already.
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()

CRATE = "redis"

# What the workspace is made of; the rest of the checkout is of no use to cargo.
PARTS = ("core", "bindings-python", "bindings-node", "examples", "tests", "README.md", "rustfmt.toml", "clippy.toml", ".venv")

CHECK = (("build", "-p", "locktender", "--features", "testing,mutants"),)
TEST = (
    ("test", "-p", "locktender", "--lib"),
    ("test", "-p", "locktender-tests", "--test", "transport"),
)


def lowest():
    """The first release of the range in Cargo.toml."""
    manifest = (ROOT / "Cargo.toml").read_text()
    found = re.search(rf'^{CRATE} = {{ version = ">=(\d+\.\d+(?:\.\d+)?), <\d+"', manifest, re.MULTILINE)
    if not found:
        raise SystemExit(f"Cargo.toml: {CRATE} has no range of versions")
    return found[1] if found[1].count(".") == 2 else f"{found[1]}.0"


def locked():
    """The release in Cargo.lock."""
    return re.search(rf'name = "{CRATE}"\nversion = "([^"]+)"', (ROOT / "Cargo.lock").read_text())[1]


def copy(place):
    """The workspace in `place`: its manifest and lock file, and links to the rest."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name in PARTS:
        (place / name).symlink_to(ROOT / name)
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy2(ROOT / name, place / name)


def cargo(place, *words):
    return subprocess.run(("cargo", *words), cwd=place, env={**os.environ, "CARGO_TARGET_DIR": str(TARGET)}).returncode


def ends_with(version, commands):
    """Runs the commands with a release; whether all succeeded."""
    place = TARGET / "ends" / version
    copy(place)
    turn = ("update", "--quiet", CRATE, "--precise", version)
    if version != locked() and cargo(place, *turn, "--offline") != 0 and cargo(place, *turn) != 0:
        return False
    return all(cargo(place, command[0], "--locked", *command[1:]) == 0 for command in commands)


def main(arguments):
    commands = TEST if arguments == ["test"] else CHECK
    versions = [lowest()] if commands is CHECK else [lowest(), locked()]
    for version in versions:
        print(f"== {CRATE} {version}", flush=True)
        if not ends_with(version, commands):
            return f"tests/ends.py: {CRATE} {version} doesn't do"
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
