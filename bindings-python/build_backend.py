"""Builds the wheel: maturin's library, and the program `locktender` beside it.

A wheel's script in Python would start an interpreter for each line of a crontab. So the wheel has the program itself. maturin builds
a library or programs, not both: here Cargo builds the program first, and maturin takes it as data.
"""

import json
import shutil
import subprocess
from pathlib import Path

import maturin
from maturin import (  # the hooks that build no wheel
    build_sdist as build_sdist,
    get_requires_for_build_editable as get_requires_for_build_editable,
    get_requires_for_build_sdist as get_requires_for_build_sdist,
    get_requires_for_build_wheel as get_requires_for_build_wheel,
    prepare_metadata_for_build_editable as prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel as prepare_metadata_for_build_wheel,
)

SCRIPTS = Path(__file__).parent / "data/scripts"  # `data` in pyproject.toml
SCRIPTS.mkdir(parents=True, exist_ok=True)  # maturin looks for it before it writes the metadata
# The features of the library's own dependency are among them, so that most of what they share is compiled once.
BUILD = "cargo build --release --manifest-path core/cli/Cargo.toml --bin locktender --message-format json".split()


def build_program():
    """Puts the program where maturin finds it. What Cargo writes about a failure is shown by pip."""
    built = subprocess.run(BUILD, check=True, stdout=subprocess.PIPE, text=True)
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    [program] = filter(None, (message.get("executable") for message in messages))
    (SCRIPTS / "locktender").unlink(missing_ok=True)
    shutil.copy2(program, SCRIPTS)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build_program()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    build_program()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)
