"""The package as users get it."""

from pathlib import Path

from locktender import _native


def test_no_bug_can_be_planted_in_the_extension_module():
    assert _native.__file__ is not None
    assert b"locktender: bugs can be planted here" not in Path(_native.__file__).read_bytes()
