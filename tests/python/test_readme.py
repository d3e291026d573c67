"""The README and the pages of docs/: their code runs, and their links lead somewhere."""

import os
import re
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Callable

import pytest

import locktender
from support.checkout import ROOT
from support.page import OURS, Block, Page, paths
from support.server import RealServer

README = Page("README.md")
PACKAGES = [Page(f"{package}/README.md") for package in ("bindings-python", "bindings-node", "core")]
COMMAND = Page("core/cli/README.md")
PAGES = [README, COMMAND, *(Page(path.relative_to(ROOT).as_posix()) for path in paths())]
PAGES += PACKAGES
PAGES += map(Page, ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "examples/dashboards/README.md", "tests/README.md"))

LIBRARY = (ROOT / "core/src/lib.rs").read_text()

# Which test runs a block, by its language. A language that isn't here is a block that nobody runs.
RUN_BY = {
    "python": "test_python_runs_as_pasted",
    "js": "tests/node/readme.test.mjs",
    "rust,no_run": "test_rust_is_compiled",
    "sql": "test_the_fencing_line_refuses_a_late_holder",
    "sh": "test_the_commands_are_there",
}

_, FIRST, *_ = PASTED = [
    block
    for page in (README, PACKAGES[0], *(Page(f"docs/{name}.md") for name in ("observability", "cron", "leaders")))
    for block in page.blocks()
    if block.language == "python"
]
NAMES = ["readme", "first", "asyncio", "events", "json", "metrics", "points", "opentelemetry", "cron", "leaders"]


def run(block: Block, url: str) -> subprocess.CompletedProcess[str]:
    """Runs a block in an interpreter of its own, with every warning an error."""
    environment = {**os.environ, "LOCKTENDER_URL": url}
    command = [sys.executable, "-W", "error", "-c", block.text]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


def test_every_block_of_the_readme_is_run_by_some_test() -> None:
    languages = {block.language for block in README.blocks()}
    assert languages == set(RUN_BY)
    assert {block.language for page in PACKAGES for block in page.blocks()} <= set(RUN_BY)
    assert len(PASTED) == len(NAMES), "one in the README, two in that of the package, five in docs/observability.md, one in each other page"


@pytest.mark.parametrize("block", PASTED, ids=NAMES)
def test_python_runs_as_pasted(block: Block, server: RealServer) -> None:
    finished = run(block, server.url)
    # What logging shows goes to stderr, and is the point of that block.
    errors = [line for line in finished.stderr.splitlines() if not line.startswith(("INFO:locktender:", '{"level": "INFO"'))]
    assert (finished.returncode, errors) == (0, [])


@pytest.mark.parametrize("block", PASTED, ids=NAMES)
def test_python_runs_without_a_server(block: Block) -> None:
    finished = run(block, f"memory://{uuid.uuid4().hex}")
    assert finished.returncode == 0, finished.stderr


def test_the_first_example_shows_a_fence_and_runs_once_per_scheduled_time(servers: Callable[[], RealServer]) -> None:
    said = run(FIRST, servers().url).stdout.splitlines()
    assert int(said[0].removeprefix("writing with fence ")) > 0
    assert said[1:] == ["filling the cache", "True None {'tidied': 3}"]


def test_the_fencing_line_refuses_a_late_holder() -> None:
    (line,) = [block.text for block in README.blocks() if block.language == "sql"]
    recipes = Page("docs/guarantees.md").recipes()
    assert line == recipes["sql-write"]
    with sqlite3.connect(":memory:") as db:
        db.execute(recipes["sql-schema"])
        db.execute("INSERT INTO orders VALUES ('42', 'new', 7)")
        assert db.execute(line, {"id": "42", "state": "late", "fence": 6}).rowcount == 0
        assert db.execute(line, {"id": "42", "state": "paid", "fence": 7}).rowcount == 1
    db.close()


def test_rust_is_compiled() -> None:
    for readme in ("../../README.md", "../README.md"):
        assert f'#[cfg(doctest)]\n#[doc = include_str!("{readme}")]' in LIBRARY


def test_the_commands_are_there() -> None:
    commands = [line.split()[0] for block in README.blocks() if block.language == "sh" for line in block.text.splitlines()]
    ours = {command for command in commands if command.startswith("./")}
    assert ours == {"./examples/demo", "./tests/run"}
    for command in ours:
        assert os.access(ROOT / command, os.X_OK), command


def test_the_packages_share_the_first_screen() -> None:
    checked = subprocess.run([sys.executable, "tests/readmes.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "cp bindings-node/README.md README.md" in (ROOT / ".github/workflows/release.yml").read_text()


def test_the_pictures_show_what_was_measured() -> None:
    checked = subprocess.run([sys.executable, "tests/bench/plots.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_every_code_of_an_error_has_its_place_on_the_page() -> None:
    kinds = [kind for kind in vars(locktender).values() if isinstance(kind, type) and issubclass(kind, locktender.LockError)]
    places = {kind().docs_url.removeprefix(OURS).partition("#")[::2] for kind in kinds}
    assert {page for page, _ in places} == {"docs/errors.md"}
    assert {anchor for _, anchor in places} <= Page("docs/errors.md").anchors()
    for source in ("core/src/error/mod.rs", "bindings-node/lib/errors.ts"):
        assert OURS + "docs/errors.md#" in (ROOT / source).read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Page) -> None:
    for link in page.links():
        if link.startswith(("http://", "https://")) and not link.startswith(OURS):
            continue
        file, _, anchor = link.removeprefix(OURS).partition("#")
        beside = ROOT if link.startswith(OURS) else page.path.parent
        target = (beside / file).resolve() if file else page.path
        assert target.is_file(), f"{page.path.name}: {link}"
        if anchor:
            assert anchor in Page(str(target.relative_to(ROOT))).anchors(), f"{page.path.name}: {link}"


@pytest.mark.parametrize("page", [README, *PACKAGES, COMMAND], ids=lambda page: str(page.path.relative_to(ROOT)))
def test_the_readme_s_links_lead_somewhere_on_pypi_too(page: Page) -> None:
    assert [link for link in page.links() if not link.startswith(("https://", "#"))] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.path.relative_to(ROOT)))
def test_every_block_says_its_language(page: Page) -> None:
    assert all(block.language for block in page.blocks())


def test_every_fault_of_the_list_has_a_test_and_every_number_is_listed() -> None:
    listed = set(re.findall(r"^- F(\d\d): ", (ROOT / "tests/faults/README.md").read_text(), re.MULTILINE))
    # At the start of a test's name, or of a file that is about one fault; several faults may share a test.
    mark = re.compile(r"(?:fn |def test_|test\([`'\"]|^\"\"\"|^//! )((?:f\d\d(?:_|: |, |\b))+)", re.MULTILINE)
    suites = [ROOT / "tests" / suite for suite in ("rust", "python", "node", "interop")]
    files = [file for suite in suites for kind in ("rs", "py", "mjs") for file in suite.rglob(f"*.{kind}")]
    named = {number for file in files for names in mark.findall(file.read_text()) for number in re.findall(r"\d\d", names)}
    assert named == listed - {"27"}, "F27 is every case of tests/contract"
