"""Modules that lead back to themselves: none, but for a kind of lock and its handle."""

import ast
import re
from pathlib import Path

import locktender
import pytest
from support.checkout import ROOT

PACKAGE = Path(locktender.__file__).parent


def python_modules():
    """The package's modules, and those each imports, also inside of functions. A stub counts instead of the module that it describes."""
    stems = {path.stem for path in PACKAGE.glob("*.py*") if path.suffix in (".py", ".pyi")}
    files = {stem: next(path for path in (PACKAGE / f"{stem}.pyi", PACKAGE / f"{stem}.py") if path.exists()) for stem in stems}
    return {stem: set(imported(ast.parse(path.read_text()))) & stems - {stem} for stem, path in files.items()}


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            yield from [node.module] if node.module else [name.name for name in node.names]


def rust_modules(sources):
    """The modules beside `lib.rs`, and those each names."""
    texts = {path.stem: re.sub("//.*", "", path.read_text()) for path in sources.glob("*.rs") if path.stem != "lib"}
    listed = {stem: re.findall(r"crate::(?:(\w+)|\{([^}]*)\})", text) for stem, text in texts.items()}
    named = {stem: set(re.findall(r"\w+", " ".join(map(" ".join, pairs)))) for stem, pairs in listed.items()}
    return {stem: names & texts.keys() - {stem} for stem, names in named.items()}


def circles(modules):
    """Each set of modules that lead to one another."""
    reached = {module: set(found) for module, found in modules.items()}
    for _ in modules:
        for found in reached.values():
            found.update(*(reached[other] for other in list(found)))
    return {frozenset(other for other in found if module in reached[other]) for module, found in reached.items() if module in found}


def test_circles_are_found():
    modules = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"d"}}
    assert circles(modules) == {frozenset("bc"), frozenset("d")}


def test_no_python_module_leads_back_to_itself():
    assert len(python_modules()) > 10 and circles(python_modules()) == set()


KINDS = [
    ("bindings-python", [{"lock", "client", "default"}]),  # a lock without a client is the default client's
    ("bindings-node", []),
]


@pytest.mark.parametrize(("binding", "kinds"), KINDS)
def test_no_rust_module_leads_back_to_itself_but_a_kind_and_its_handle(binding, kinds):
    assert circles(rust_modules(ROOT / binding / "src")) == {frozenset(kind) for kind in kinds}
