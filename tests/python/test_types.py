"""Types: they are those of the module, and users' code type-checks strictly."""

import ast
import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import locktender
import pytest
from locktender import _native
from test_docstrings import STUB

HERE = Path(__file__).parent
PACKAGE = Path(locktender.__file__).parent


def check(*command: object) -> None:
    done = subprocess.run([sys.executable, "-m", *map(str, command)], capture_output=True, text=True, cwd=HERE)
    assert done.returncode == 0, done.stdout + done.stderr


# The native module has several stubs. Each is compared with a module that has what the stub describes.
STUBTEST = """
import ast, sys, types
from pathlib import Path
from locktender import _native
from mypy import stubtest

for stub in Path(_native.__file__).parent.glob("_native_*.pyi"):
    part = types.ModuleType(f"locktender.{stub.stem}")
    classes = [node.name for node in ast.parse(stub.read_text()).body if isinstance(node, ast.ClassDef)]
    vars(part).update((name, getattr(_native, name)) for name in classes if hasattr(_native, name))
    sys.modules[part.__name__] = part
sys.argv[1:] = ["locktender"]
sys.exit(stubtest.main())
"""


def test_the_stubs_are_those_of_the_module():
    done = subprocess.run([sys.executable, "-c", STUBTEST], capture_output=True, text=True, cwd=HERE)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_users_write_is_typed(tmp_path):
    check("mypy", "--strict", "--cache-dir", tmp_path, HERE / "typing_cases.py")


@pytest.mark.long
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


def test_everything_exported_is_there():
    for name in locktender.__all__:
        assert hasattr(locktender, name)


def undocumented(tree: ast.AST, at: str = "") -> list[str]:
    """What is public in a stub, and has no docstring in any of its overloads."""
    said: dict[str, bool] = {}
    below: list[str] = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            name = f"{at}{node.name}"
            said[name] = said.get(name, False) or ast.get_docstring(node) is not None
            if isinstance(node, ast.ClassDef):
                below += undocumented(node, f"{name}.")
    return [name for name, documented in said.items() if not documented] + below


def test_everything_public_is_documented():
    assert undocumented(STUB) == []


def test_one_module_serves_every_version_of_python():
    assert ".abi3." in str(_native.__file__) or sys.platform == "win32"
