"""Docstrings: for `help()`, every public name has the stub's docstring and the stub's parameters."""

import ast
import inspect
from pathlib import Path

import locktender
import pytest
from locktender import _native, errors, testing

STUBS = Path(_native.__file__).parent.glob("_native*.pyi")
STUB = ast.Module([node for stub in STUBS for node in ast.parse(stub.read_text()).body], [])
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}


def members_of(node):
    """The members of a class of the stub and of all its bases there."""
    bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
    return node.body + [member for base in bases if base.id in CLASSES for member in members_of(CLASSES[base.id])]


def documented():
    """Every public class, function, method and field of the stub: its dotted name, its node."""
    for node in STUB.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
            yield node.name, node
        if isinstance(node, ast.ClassDef):
            members = [member for member in members_of(node) if isinstance(member, ast.FunctionDef) and not member.name.startswith("_")]
            first = {member.name: member for member in reversed(members)}  # of overloads: the first has the docstring
            yield from ((f"{node.name}.{member.name}", member) for member in first.values())


DOCUMENTED = dict(documented())


def runtime(dotted):
    found = _native
    for part in dotted.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("dotted", DOCUMENTED)
def test_help_says_what_the_stub_says(dotted):
    text = ast.get_docstring(DOCUMENTED[dotted])
    assert text and inspect.getdoc(runtime(dotted)) == text


def options(name):
    """The options of a `TypedDict` of the stub, its own ones first."""
    [node] = [node for node in STUB.body if isinstance(node, ast.ClassDef) and node.name == name]
    own = [field.target.id for field in node.body if isinstance(field, ast.AnnAssign)]
    return own + [option for base in node.bases if base.id != "TypedDict" for option in options(base.id)]


def parameters(node):
    spec = node.args
    kinds = [(spec.posonlyargs, "positional"), (spec.args, "either"), (spec.kwonlyargs, "keyword")]
    named = [(each.arg, kind) for listed, kind in kinds for each in listed if each.arg not in ("self", "cls")]
    unpacked = getattr(spec.kwarg and spec.kwarg.annotation, "slice", None)  # of Unpack[_Options]
    return named + [(option, "keyword") for option in (options(unpacked.id) if unpacked else [])]


KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "positional",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "either",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
}


@pytest.mark.parametrize("dotted", [dotted for dotted, node in DOCUMENTED.items() if isinstance(node, ast.FunctionDef)])
def test_help_shows_the_parameters_of_the_stub(dotted):
    node = DOCUMENTED[dotted]
    if any(isinstance(decorator, ast.Name) and decorator.id == "property" for decorator in node.decorator_list):
        assert not callable(runtime(dotted))
        return
    shown = inspect.signature(runtime(dotted)).parameters.values()
    named = [(each.name, KINDS[each.kind]) for each in shown if each.kind in KINDS and each.name != "self"]
    assert named == parameters(node)


def test_a_client_shows_the_options_of_the_stub():
    [init] = [node for node in STUB.body if isinstance(node, ast.ClassDef) and node.name == "Client"]
    [new] = [member for member in init.body if isinstance(member, ast.FunctionDef) and member.name == "__new__"]
    shown = [(each.name, KINDS[each.kind]) for each in inspect.signature(locktender.Client).parameters.values()]
    assert shown == parameters(new)


def test_every_public_name_has_a_docstring():
    for module in (locktender, testing, errors):
        assert module.__doc__
        for name, value in inspect.getmembers(module):
            if not name.startswith("_") and (inspect.isclass(value) or callable(value)):
                assert inspect.getdoc(value), f"{module.__name__}.{name}"
