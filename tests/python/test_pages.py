"""The tutorials and the how-to pages: their code is right, each page is linked, and each block has a test that runs it."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support.checkout import ROOT
from support.page import Block, Page, paths

NAMES = [path.relative_to(ROOT / "docs").as_posix() for path in paths()]
PAGES = {name: Page(f"docs/{name}") for name in NAMES if "/" in name or name == "why-not-set-nx.md"}
BLOCKS = [(name, number, block) for name, page in PAGES.items() for number, block in enumerate(page.blocks())]

# What the applications of the pages are played by. A block with a name is run there.
PLAYS = "\n".join(path.read_text() for path in (ROOT / "tests/site").glob("plays_*.py"))

# Blocks without a name that need more than the memory of a program, and why nobody runs them.
ELSEWHERE = {"why-not-set-nx.md": "another library's lock, which tests/interop has"}


def chosen(*languages: str) -> list:
    return [pytest.param(block, id=f"{name}-{number}") for name, number, block in BLOCKS if block.language in languages]


def programs() -> list:
    """The blocks of Python that run by themselves, with what they print, if the page says it."""
    found = []
    for name, page in PAGES.items():
        blocks = page.blocks()
        for number, (block, after) in enumerate(zip(blocks, [*blocks[1:], None], strict=True)):
            alone = name == "how-to/idempotency.md" or block.recipe is None and "memory://" in block.text
            if block.language == "python" and alone:
                prints = after.text if after is not None and after.language == "text" else None
                found.append(pytest.param(block, prints, id=f"{name}-{number}"))
    return found


@pytest.mark.parametrize("name", [name for name in NAMES if name != "index.md"])
def test_the_index_has_each_page(name: str) -> None:
    assert name in {link.partition("#")[0] for link in Page("docs/index.md").links()}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_short_and_has_one_title(name: str) -> None:
    outside = re.sub(r"^```.*?^```$", "", PAGES[name].text, flags=re.MULTILINE | re.DOTALL)
    assert len(re.findall(r"^# ", outside, re.MULTILINE)) == 1
    assert len(PAGES[name].text.splitlines()) <= 200


@pytest.mark.parametrize("block", chosen("python"))
def test_python_compiles(block: Block) -> None:
    compile(block.text, "page", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize("block", chosen("yaml"))
def test_yaml_can_be_read(block: Block) -> None:
    assert yaml.safe_load(block.text)


@pytest.mark.parametrize(("block", "prints"), programs())
def test_python_runs_as_pasted(block: Block, prints: str | None, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LOCKTENDER_")}
    environment["LOCKTENDER_URL"] = "memory://pages"
    command = [sys.executable, "-W", "error", "-c", block.text]
    finished = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert (finished.returncode, finished.stderr) == (0, "")
    if prints is not None:
        assert finished.stdout == prints


def test_each_block_of_code_is_run_by_some_test() -> None:
    """A named one in tests/site, one in memory here or in tests/node/pages.test.mjs, the tutorial for Rust in core's doctests."""
    for name, _, block in BLOCKS:
        if block.recipe:
            assert f'"{block.recipe}"' in PLAYS, f"{name}: no play has {block.recipe}"
        elif block.language in ("python", "js", "rust", "ts"):
            assert "memory://" in block.text or name in ELSEWHERE, f"{name}: nothing runs\n{block.text}"
