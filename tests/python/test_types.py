"""The types are those of the module, and users' code type-checks strictly."""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import locktender

HERE = Path(__file__).parent
PACKAGE = Path(locktender.__file__).parent


def check(*command: object) -> None:
    done = subprocess.run([sys.executable, "-m", *map(str, command)], capture_output=True, text=True, cwd=HERE)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stubs_are_those_of_the_module():
    check("mypy.stubtest", "locktender")


def test_what_users_write_is_typed(tmp_path):
    check("mypy", "--strict", "--cache-dir", tmp_path, HERE / "typing_cases.py")


def test_pyright_agrees(tmp_path):
    """Its wheel brings a node of its own, for which the node of the checkout stands in."""
    checker = Path(sysconfig.get_path("purelib")) / "basedpyright/index.js"
    settings = {"include": [str(HERE / "typing_cases.py")], "typeCheckingMode": "strict", "enableTypeIgnoreComments": True}
    settings |= {"reportUnusedCallResult": False, "pythonVersion": "3.10"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = ["node", str(checker), "--project", str(tmp_path), "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_itself_is_typed(tmp_path):
    check("mypy", "--strict", "--cache-dir", tmp_path, "-p", "locktender")


def test_it_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").exists()


def test_everything_public_is_documented_and_exported():
    for name in locktender.__all__:
        assert hasattr(locktender, name)
    stub = (PACKAGE / "_native.pyi").read_text()
    for name in ("Client", "Lock", "Held", "AsyncHeld", "lock", "configure"):
        assert f"class {name}:\n    \"\"\"" in stub or f"def {name}(" in stub
