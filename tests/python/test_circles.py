"""Modules that lead back to themselves: none, but for a kind of lock and its handle."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import locktender
import pytest
from support.checkout import ROOT
from support.rust_modules import Crate

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
    """The modules beside `lib.rs`, and those each names, in its file or in those of its folder."""
    texts = defaultdict(str)
    for path in sources.rglob("*.rs"):
        texts[path.relative_to(sources).parts[0].removesuffix(".rs")] += re.sub("//.*", "", path.read_text())
    del texts["lib"]
    listed = {stem: re.findall(r"crate::(?:(\w+)|\{([^}]*)\})", text) for stem, text in texts.items()}
    named = {stem: set(re.findall(r"\w+", " ".join(map(" ".join, pairs)))) for stem, pairs in listed.items()}
    return {stem: names & texts.keys() - {stem} for stem, names in named.items()}


def circles(modules):
    """Each set of modules that lead to one another."""
    reached = {module: reached_from(module, modules) for module in modules}
    return {frozenset(other for other in found if module in reached[other]) for module, found in reached.items() if module in found}


def reached_from(module, modules):
    """The modules to which this one leads."""
    found, unseen = set(), list(modules[module])
    while unseen:
        other = unseen.pop()
        if other not in found:
            found.add(other)
            unseen += modules[other]
    return found


def test_circles_are_found():
    modules = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"d"}}
    assert circles(modules) == {frozenset("bc"), frozenset("d")}


def test_no_python_module_leads_back_to_itself():
    assert len(python_modules()) > 10 and circles(python_modules()) == set()


KINDS = [
    ("bindings-python", [{"lock", "client", "default", "job", "election"}]),  # a client makes them, and without one it is the default client
    ("bindings-node", []),
]


@pytest.mark.parametrize(("binding", "kinds"), KINDS)
def test_no_rust_module_leads_back_to_itself_but_a_kind_and_its_handle(binding, kinds):
    assert circles(rust_modules(ROOT / binding / "src")) == {frozenset(kind) for kind in kinds}


def test_a_name_counts_where_it_is_defined_and_not_in_tests_or_texts(tmp_path):
    sources = {
        "lib.rs": "mod a; mod b; mod c;",
        "a/mod.rs": "pub use self::deep::Deep; mod deep;",
        "a/deep.rs": 'pub struct Deep; const URL: &str = "redis://localhost"; use crate::b::{self, Other};',
        "b.rs": "pub struct Other; // use crate::c::No;\n#[cfg(test)]\nmod tests { use crate::c::No; }\nfn f() { crate::c::used(); }",
        "c.rs": "pub fn used() -> crate::a::Deep { crate::a::Deep }",
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    crate = Crate(tmp_path)
    assert crate.graph() == {"a": set(), "a::deep": {"b"}, "b": {"c"}, "c": {"a::deep"}}
    assert circles(crate.graph()) == {frozenset({"a::deep", "b", "c"})}


CORE = Crate(ROOT / "core/src")

# A session keeps its acquisitions running, and they need it.
SESSION = {"session", *(f"session::{name}" for name in "actor bodies history own_holds wakeups warnings".split())}


def test_no_file_of_the_core_leads_back_to_itself_but_a_session_and_its_acquisitions():
    assert circles(CORE.graph()) == {frozenset(SESSION)}


def folders():
    """The folders of the architecture page, and what each may use; `None` for everything. And the files that all may use."""
    page = (ROOT / "docs/architecture.md").read_text()
    rows = re.findall(r"^\| (.+?) \| (.*?) \| (.*?) \|$", page[page.index("| folder of `core/src`") :], re.M)
    rows = rows[2 : 1 + [folder for folder, _, _ in rows].index("`testing`") + 1]
    names = {folder: re.findall(r"`([\w/]+)`", folder + inside * (folder == "top level")) for folder, inside, _ in rows}
    may = {}
    for folder, _, uses in rows:
        for name in names[folder] if folder != "top level" else ():
            may[name.replace("/", "::")] = None if uses == "everything" else re.findall(r"`([\w/]+)`", uses)
    return may, set(names["top level"])


def below(module, folder):
    return module == folder or module.startswith(f"{folder}::")


def test_what_a_folder_of_the_core_uses_stands_in_the_page_on_architecture():
    may, everybodys = folders()
    rooms = {module.split("::")[0] for module in CORE.texts if module}
    assert rooms == {name for name in may if "::" not in name} - {"scripts"} | everybodys

    def folder_of(module):
        return max((name for name in may if below(module, name)), key=len, default="top level")

    wrong = []
    for module in filter(None, CORE.texts):
        folder = folder_of(module)
        uses = may.get(folder, [])
        if uses is None:
            continue
        beside = folder.rpartition("::")[0]
        listed = {name.replace("/", "::") for name in uses}
        listed |= {f"{beside}::{name}" for name in listed}
        files = listed - may.keys()
        paths = {name: name.replace("/", "::") for name in uses}
        there = {name for name, path in paths.items() if {path, f"{beside}::{path}"} & {*may, *CORE.texts}}
        wrong += [f"{folder} may use {name}, which is no file" for name in uses if name not in there]
        for other, path in CORE.needs(module).items():
            known = folder_of(other) in {folder, "top level"} | listed or any(below(other, file) for file in files)
            if not known:
                wrong.append(f"{CORE.files[module]} uses {path}, and {folder} may use {', '.join(uses) or 'nothing'}")
    assert wrong == []
