"""The package as users get it."""

import importlib
import json
import re
from pathlib import Path

from locktender import _children, _native
from support.checkout import ROOT


def test_no_bug_can_be_planted_in_the_extension_module():
    assert _native.__file__ is not None
    assert b"locktender: bugs can be planted here" not in Path(_native.__file__).read_bytes()


def test_the_package_has_what_the_native_module_uses_by_name():
    sources = "".join(path.read_text() for path in (ROOT / "bindings-python/src").rglob("*.rs"))
    used = set(re.findall(r'own::(?:call|named)\([^;]*?"(_\w+)", "(\w+)"', sources))
    assert len(used) > 20
    for module, name in used:
        assert hasattr(importlib.import_module(f"locktender.{module}"), name), f"{module}.{name}"
    later = {module for module, _ in used} - {"_threads"}
    assert later == set(_children._IMPORTED_LATER)
    # And what packs a program finds them.
    (listed,) = re.findall(r"(?s)finds these only here\.\n(.+?)\n\n", (ROOT / "bindings-python/python/locktender/_used_by_native.py").read_text())
    assert later == set(re.findall(r"\b_\w+", listed))


def test_the_three_registries_say_the_same():
    def said(manifest: str) -> list[str]:
        return re.findall(r'^description = "(.+)"$', (ROOT / manifest).read_text(), re.M)

    assert said("Cargo.toml") == said("pyproject.toml") == [json.loads((ROOT / "package.json").read_text())["description"]]
