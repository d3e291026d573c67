"""The checkout: its root, and paths of its files."""

import json
import os
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[3]


def prepared(file: str) -> Path:
    """A file that `tests/run setup` made under .venv."""
    path = ROOT / ".venv" / file
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: run `tests/run setup`")
    return path


def certificate(file: str) -> Path:
    """A certificate or key of the TLS tests, such as ca.pem or client.key; tests/certificates.py lists them."""
    return prepared("certificates") / file


class Binary(NamedTuple):
    """One version of Redis or Valkey that can be started here."""

    name: str
    kind: str
    version: str
    path: str


def binaries() -> list[Binary]:
    """Every version there is."""
    return [Binary(**entry) for entry in json.loads(prepared("servers.json").read_text())]


def binary(name: str | None = None) -> Binary:
    """The version of that name, else that of LOCKTENDER_TEST_SERVER, else the first."""
    name = name or os.environ.get("LOCKTENDER_TEST_SERVER")
    found = [each for each in binaries() if name in (None, each.name)]
    if not found:
        raise LookupError(f"no server {name} in .venv/servers.json")
    return found[0]
