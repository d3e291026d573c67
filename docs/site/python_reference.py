"""The reference of Python: the stubs as modules that the generator can read, and the pages that name what is in them.

The stubs are no modules, have roles of reStructuredText for `help()`, and options as indented texts. A copy has Markdown instead.
"""

import ast
import inspect
import re
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
        self.public = {name for name in self.home if not name.startswith("_")}
        self.public |= {f"{name}.{member}" for name in list(self.public) if name in self.classes for member in self.members(name)}

    def bases(self, name: str) -> list[str]:
        nodes = [base.value if isinstance(base, ast.Subscript) else base for base in self.classes[name].bases]
        return [node.id for node in nodes if isinstance(node, ast.Name) and node.id in self.classes]

    def members(self, name: str) -> set[str]:
        own = {node.name for node in self.classes[name].body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
        return own.union(*map(self.members, self.bases(name)))

    def reference(self, name: str, within: str | None) -> str:
        """What a role becomes: a link, if the name is known, and code."""
        beside = [each for each in self.classes if within and not each.startswith("_") and (each == within or within in self.bases(each))]
        for dotted in (*(f"{each}.{name}" for each in beside), name):
            if dotted in self.public:
                home = self.home[dotted.partition(".")[0]]
                return f"[`{name}`][locktender.{'' if home.startswith('_') or home == 'errors' else home + '.'}{dotted}]"
        return f"`{name}`"


def code(lines: list[str], indent: str) -> list[str]:
    """An indented block as a fenced one."""
    text = inspect.cleandoc("\n".join(lines)).splitlines()
    return [f"{indent}```python", *((indent + line).rstrip() for line in text), f"{indent}```", ""]


def markdown(text: str, names: Names, within: str | None) -> str:
    """A docstring as Markdown."""
    done: list[str] = []
    block: list[str] = []
    inside = ""  # the indentation of the texts of options
    lines = [*inspect.cleandoc(text).splitlines(), ""]

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
            first.value.value = markdown(first.value.value, names, within)
        if isinstance(node, ast.ClassDef):
            node.body = [
                each for each in node.body if not (isinstance(each, ast.FunctionDef) and ast.unparse(each.returns or ast.Pass()) == "NoReturn")
            ] or [ast.Pass()]
        defined = [each for each in node.body if isinstance(each, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))]
        for each in defined:
            visit(each, each.name if isinstance(each, ast.ClassDef) else within)
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
        write(pages / f"{page}.md", f"# {title}\n\n" + "\n".join(f"::: locktender.{name}\n" for name in listed))
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
