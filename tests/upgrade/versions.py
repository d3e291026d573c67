"""Versions: the command `locktender` of a checkout before this one, and of this one."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

from support.checkout import ROOT

# What "before" is until the first release: the last commit before the core got a parser of its own for the answers of servers. It has
# all kinds of locks and jobs that there are, and it reads and writes everything through the crate `redis`.
BEFORE = "bb3a7bd32203a634fe38cac818be12394364726a"

# In seconds: a build of all crates, and a question to git.
BUILD, QUESTION = 1_200, 60

CACHE = ROOT / ".venv/upgrade"


class Missing(Exception):
    """Something that this machine or this clone doesn't have."""


def git(*words: str) -> bytes:
    try:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=True, timeout=QUESTION).stdout
    except FileNotFoundError:
        raise Missing("git is missing: the source of an earlier version can't be had") from None


def before() -> str:
    """The commit of the last release, or `BEFORE` until there is one. A release that is this very checkout is not before it."""
    try:
        tag = git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^").decode().strip()
    except subprocess.CalledProcessError:
        tag = BEFORE
    try:
        return git("rev-parse", "--quiet", "--verify", f"{tag}^{{commit}}").decode().strip()
    except subprocess.CalledProcessError:
        raise Missing(f"the commit {tag} is not in this clone, which may be a shallow one: git fetch --unshallow --tags") from None


def build(source: Path, name: str) -> Path:
    """Builds the command of a source, and copies it. Crates of registries are built once for all versions."""
    command = "cargo build --locked -p locktender-cli --bin locktender --message-format json-render-diagnostics".split()
    environment = {word: value for word, value in os.environ.items() if word not in ("CARGO_BUILD_TARGET", "CARGO_TARGET_DIR")}
    target = ROOT / "target/upgrade"
    built = subprocess.run(
        [*command, "--target-dir", str(target)], cwd=source, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=BUILD
    )
    assert built.returncode == 0, f"{name} can't be built:\n{built.stderr}"
    [program] = filter(None, (json.loads(line).get("executable") for line in built.stdout.splitlines()))
    CACHE.mkdir(parents=True, exist_ok=True)
    copy, whole = CACHE / name, CACHE / f"{name}.new"
    whole.write_bytes(Path(program).read_bytes())
    whole.chmod(0o755)
    return whole.replace(copy)


def built_before() -> Path:
    """The command of the version before; it is built once."""
    commit = before()
    name = f"locktender-{commit[:12]}"
    if (CACHE / name).is_file():
        return CACHE / name
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        subprocess.run(["tar", "-x", "-f", "-", "-C", folder], input=git("archive", "--format=tar", commit), check=True, timeout=QUESTION)
        return build(Path(folder), name)


def built_today() -> Path:
    """The command of this checkout."""
    return build(ROOT, "locktender-today")
