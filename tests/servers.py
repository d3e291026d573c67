"""Servers: it finds every Redis and Valkey server binary for the tests, and lists them in .venv/servers.json.

Each entry: name ("valkey-9.1"), kind ("redis" or "valkey"), version and path.
Those on PATH come first, then the wheels of servers.txt in that order; the first entry is the tests' default.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WHEELS = ROOT / "tests/servers.txt"
UNPACKED = ROOT / ".venv/servers"
LIST = ROOT / ".venv/servers.json"

# The binaries don't depend on Python, the wheels are tagged as if they did: this version has all of them.
WHEEL_PYTHON = "3.12"


def pinned_wheels():
    lines = (line.strip() for line in WHEELS.read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def unpack(pip):
    """Unpacks the wheels; returns those that could not be had (other platforms lack some)."""
    missing = []
    for wheel in pinned_wheels():
        target = UNPACKED / wheel.partition("==")[0]
        command = [*pip, "install", "--quiet", "--no-deps", "--only-binary=:all:", "--upgrade"]
        command += ["--python-version", WHEEL_PYTHON, "--target", str(target), wheel]
        if subprocess.run(command).returncode != 0:
            missing.append(wheel)
    return missing


def candidates():
    for program in ("redis-server", "valkey-server"):
        if found := shutil.which(program):
            yield Path(found)
    for wheel in pinned_wheels():
        target = UNPACKED / wheel.partition("==")[0]
        # A wheel may also have a copy in bin/, made for its scripts; the package's own is the original.
        found = [p for p in sorted(target.rglob("*-server")) if p.is_file() and p.parent.parent != target]
        yield from found[:1]


def describe(path):
    """The list entry of one binary, or None if it doesn't run here."""
    if UNPACKED in path.parents:
        path.chmod(0o755)  # one of the wheels forgets that
    try:
        banner = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.match(r"(Redis|Valkey) server v=((\d+\.\d+)\.\d+)", banner)
    if not match:
        return None
    kind, version, series = match[1].lower(), match[2], match[3]
    return {"name": f"{kind}-{series}", "kind": kind, "version": version, "path": str(path)}


def discover():
    """Writes the list and returns it: one entry per name, the first found wins."""
    servers = {}
    for path in candidates():
        if entry := describe(path):
            servers.setdefault(entry["name"], entry)
    LIST.parent.mkdir(exist_ok=True)
    LIST.write_text(json.dumps(list(servers.values()), indent=2) + "\n")
    return list(servers.values())
