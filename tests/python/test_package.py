"""The package as users get it."""

import json
import re
from pathlib import Path

from locktender import _native
from support.checkout import ROOT


def test_no_bug_can_be_planted_in_the_extension_module():
    assert _native.__file__ is not None
    assert b"locktender: bugs can be planted here" not in Path(_native.__file__).read_bytes()


def test_the_three_registries_say_the_same():
    def said(manifest: str) -> list[str]:
        return re.findall(r'^description = "(.+)"$', (ROOT / manifest).read_text(), re.M)

    assert said("Cargo.toml") == said("pyproject.toml") == [json.loads((ROOT / "package.json").read_text())["description"]]
