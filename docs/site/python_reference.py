"""The reference of Python: the stubs as modules that the generator can read, and the pages that name what is in them.

The stubs are no modules, have roles of reStructuredText for `help()`, and options as indented texts. A copy has Markdown instead.
"""

import ast
import copy
import re
import textwrap
from pathlib import Path

from pages import ROOT, write

PACKAGE = ROOT / "bindings-python/python/locktender"
MODULES = ("errors.py", "_try_outcome.py", "testing.py", "prometheus.py", "influxdb.py", "opentelemetry.py")

# The pages, with the names of each. Names with a dot are in modules of their own.
PAGES = {
    "client": ("Client", ["Client", "configure", "Credentials", "ServerReport", "safe_name"]),
    "locks": ("Locks", ["Lock", "MultiLock", "lock", "read_lock", "semaphore", "multi_lock", "TryOutcome", "LockInfo", "OwnerFields", "Grant"]),
    "holds": ("Holds", ["Hold", "AsyncHold", "MultiHold", "AsyncMultiHold", "Release", "Loss", "HoldInfo"]),
    "jobs": ("Jobs", ["Job", "job", "cron_job", "Attempt", "AsyncAttempt", "JobOutcome", "JobStatus"]),
    "elections": ("Elections", ["Election", "election", "Leadership", "AsyncLeadership", "Leader", "Observation", "Observer"]),
    "errors": (
        "Errors",
        [
            *("LockError", "AcquireTimeoutError", "LockLostError", "NotHeldError", "UnavailableError", "DeniedError", "KeyConflictError"),
            *("InvalidArgumentError", "DeadlockError", "ClosedError", "ForkedError", "JobDeadError", "InternalError", "ServerFailure"),
        ],
    ),
    "monitoring": (
        "Events and metrics",
        [
            *("LockEvent", "metrics", "Metrics", "Metric", "Sample"),
            *("prometheus.Collector", "influxdb.Points", "opentelemetry.LocktenderInstrumentor"),
        ],
    ),
    "testing": ("Testing", ["testing.ScriptedServer", "testing.Clock", "testing.Seen"]),
}

ROLE = re.compile(r":(?:exc|meth|class|func|attr|mod):`~?([^`]+)`")
TERM = re.compile(r"``\w+``(?:, ``\w+``)*")


class Names:
    """All that is defined, by the dotted names under which users find it."""

    def __init__(self, modules: dict[str, ast.Module]) -> None:
        self.home = {node.name: module for module, tree in modules.items() for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        self.classes = {node.name: node for tree in modules.values() for node in tree.body if isinstance(node, ast.ClassDef)}
        for name in [name for name in self.classes if not name.startswith("_")]:
            flatten(self.classes[name], self.classes)
        spell_out(modules)
        self.members = {name: {each.name for each in functions(node)} for name, node in self.classes.items()}

    def owner(self, within: str, member: str) -> str | None:
        """The class that has a member: this one, or one of its bases."""
        if member in self.members[within]:
            return within
        bases = [base.id for base in self.classes[within].bases if isinstance(base, ast.Name) and base.id in self.classes]
        return next(filter(None, (self.owner(base, member) for base in bases)), None)

    def reference(self, name: str, within: str | None) -> str:
        """What a role becomes: a link, if the name is known, and code."""
        head, _, member = name.partition(".")
        if not member and within in self.classes and self.owner(within, name):
            head, member = within, name
        owner = self.owner(head, member) if member and head in self.classes else head
        if owner not in self.home or owner.startswith("_"):
            return f"`{name}`"
        home = self.home[owner]
        dotted = f"{'' if home.startswith('_') or home == 'errors' else home + '.'}{owner}{'.' + member if member else ''}"
        return f"[`{name}`][locktender.{dotted}]"


def functions(node: ast.ClassDef | ast.Module) -> list[ast.FunctionDef]:
    return [each for each in node.body if isinstance(each, ast.FunctionDef)]


class Given(ast.NodeTransformer):
    """Puts types in the place of type variables."""

    def __init__(self, types: dict[str, ast.expr]) -> None:
        self.types = types

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.types.get(node.id, node)


def spell_out(modules: dict[str, ast.Module]) -> None:
    """Puts what private names of types stand for into the signatures."""
    nodes = [node for tree in modules.values() for node in tree.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)]
    types = {node.target.id: node.value for node in nodes if ast.unparse(node.annotation) == "TypeAlias" and node.value is not None}
    given = Given({name: value for name, value in types.items() if name.startswith("_")})
    for _ in types:  # one may stand for another
        given.types = {name: given.visit(copy.deepcopy(value)) for name, value in given.types.items()}
    for node in (node for tree in modules.values() for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        node.returns = node.returns and given.visit(node.returns)
        for each in ast.walk(node.args):
            if isinstance(each, ast.arg) and each.annotation is not None:
                each.annotation = given.visit(each.annotation)


def arguments(node: ast.expr) -> list[ast.expr]:
    """What is in the brackets of a type."""
    if not isinstance(node, ast.Subscript):
        return []
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def flatten(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> None:
    """Gives a class the members of its bases that no user sees."""
    for base in list(node.bases):
        name = ast.unparse(base).partition("[")[0]
        if name == "Generic":
            node.bases.remove(base)
        elif name.startswith("_") and name in classes:
            hidden = copy.deepcopy(classes[name])
            variables = [ast.unparse(each) for own in hidden.bases for each in arguments(own) if ast.unparse(own).startswith("Generic[")]
            flatten(hidden, classes)
            hidden = Given(dict(zip(variables, arguments(base), strict=False))).visit(hidden)
            known = {each.name for each in functions(node)}
            inherited = [each for each in functions(hidden) if each.name not in known]
            node.bases[node.bases.index(base) : node.bases.index(base) + 1] = hidden.bases
            # After the docstring.
            node.body[1:1] = inherited


def code(lines: list[str], indent: str) -> list[str]:
    """An indented block as a fenced one."""
    text = textwrap.dedent("\n".join(lines)).strip("\n").splitlines()
    return [f"{indent}```python", *((indent + line).rstrip() for line in text), f"{indent}```", ""]


def markdown(text: str, names: Names, within: str | None, margin: int = 0) -> str:
    """A docstring as Markdown. `margin`: its indentation, which can't be seen where an example is all that follows the first line."""
    done: list[str] = []
    block: list[str] = []
    inside = ""  # the indentation of the texts of options
    first, *rest = text.strip().splitlines()
    lines = [first, *(line[margin:].rstrip() for line in rest), ""]

    def inline(line: str) -> str:
        line = ROLE.sub(lambda match: names.reference(match[1], within), line)
        return re.sub(r"``([^`]+)``", r"`\1`", line.removesuffix("::").rstrip())

    for at, line in enumerate(lines):
        depth = len(line) - len(line.lstrip())
        if block and (not line or depth >= len(inside) + 4):
            block.append(line)
            if line or at + 1 < len(lines) and lines[at + 1].startswith(inside + "    "):
                continue
            done += code(block, inside)
            block = []
        elif depth >= len(inside) + 4 and not done[-1]:
            block = [line]
        elif TERM.fullmatch(line) and lines[at + 1].startswith("    "):
            inside = "    "
            done += ["", inline(line), ""]
        elif inside and line.startswith(inside):
            done.append((":   " if not done[-1] and done[-2].startswith("`") else "    ") + inline(line.strip()))
        else:
            inside = inside if not line else ""
            done.append(inline(line))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(done)).strip()


def rewritten(tree: ast.Module, names: Names) -> str:
    """A module with Markdown in its docstrings, without methods that only raise an error, and with a body for the last of overloads."""

    def visit(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, within: str | None) -> None:
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            first.value.value = markdown(first.value.value, names, within, first.col_offset)
        if isinstance(node, ast.ClassDef):
            node.body = [
                each for each in node.body if not (isinstance(each, ast.FunctionDef) and ast.unparse(each.returns or ast.Pass()) == "NoReturn")
            ] or [ast.Pass()]
        defined = [each for each in node.body if isinstance(each, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))]
        for each in defined:
            visit(each, each.name if isinstance(each, ast.ClassDef) else within)
        for each in functions(node) if isinstance(node, (ast.Module, ast.ClassDef)) else []:
            if each.name == "__new__":  # whose parameters the generator shows by this name only
                each.name, each.returns = "__init__", None
            if each.args.kwarg is not None:
                each.args.kwarg.annotation = None  # the docstring has the options
        groups: dict[str, list[ast.FunctionDef]] = {}
        for each in defined:
            if isinstance(each, ast.FunctionDef) and any(ast.unparse(mark) == "overload" for mark in each.decorator_list):
                groups.setdefault(each.name, []).append(each)
        for group in groups.values():
            group[-1].decorator_list = []
            group[-1].body = group[0].body

    visit(tree, None)
    return ast.unparse(tree)


def stage(modules: Path, pages: Path) -> list[str]:
    """Writes the modules and the pages. Returns the pages."""
    files = {path.stem: path for path in (*PACKAGE.glob("_native*.pyi"), *(PACKAGE / name for name in MODULES))}
    trees = {name: ast.parse(path.read_text()) for name, path in sorted(files.items())}
    names = Names(trees)
    own = [name for _, listed in PAGES.values() for name in listed if "." not in name]
    assert {*own, "__version__"} == set(exported()), {*own, "__version__"} ^ set(exported())
    for name, tree in trees.items():
        write(modules / "locktender" / f"{name}.py", rewritten(tree, names))
    write(modules / "locktender/__init__.py", "\n".join(f"from .{names.home[name]} import {name}" for name in own) + f"\n\n__all__ = {own}\n")
    for page, (title, listed) in PAGES.items():
        write(pages / f"{page}.md", f"# {title} in Python\n\n" + "\n".join(f"::: locktender.{name}\n" for name in listed))
    rows = [f"| [{title}]({page}.md) | {', '.join(f'[`{name}`][locktender.{name}]' for name in listed)} |" for page, (title, listed) in PAGES.items()]
    head = (
        "# Python\n\nAll that `locktender` exports. Times are seconds: `float`, `int` or `datetime.timedelta`.\n\n| page | names |\n| --- | --- |\n"
    )
    write(pages / "index.md", head + "\n".join(rows) + "\n")
    return [*PAGES, "index"]


def exported() -> list[str]:
    """What `from locktender import *` imports."""
    for node in ast.parse((PACKAGE / "__init__.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    raise AssertionError("__all__")
