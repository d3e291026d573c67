"""The site of the documentation: its navigation has each page, and its build changes pages as it says. `docs/site/build` isn't run here."""

import json
import posixpath
import re
import sys
from pathlib import Path

import pytest
import yaml
from support.checkout import ROOT

SITE = ROOT / "docs/site"
sys.path.insert(0, str(SITE))

import finish
import home
import node_reference
import pages
import python_reference

NAV = yaml.safe_load((SITE / "mkdocs.yml").read_text())["nav"]
PLACES = {file: page for page, file in pages.sources().items()}
GENERATED = {
    f"reference/{language}/{page}.md"
    for language, table in (("python", python_reference), ("node", node_reference))
    for page in (*table.PAGES, "index")
}


def test_the_navigation_has_each_page_once() -> None:
    listed = pages.listed(NAV)
    assert sorted(listed) == sorted({*PLACES.values(), *GENERATED}), "docs/site/mkdocs.yml: a page is one line of `nav`"


@pytest.mark.parametrize(
    ("word", "page"),
    [
        ("read-write lock", "semaphores.md"),
        ("semaphore", "semaphores.md"),
        ("leader election", "leaders.md"),
        ("deadlock", "how-to/troubleshooting.md"),
        ("idempoten", "how-to/idempotency.md"),
        ("FAQ", "how-to/troubleshooting.md"),
        ("Flask", "how-to/django-flask.md"),
    ],
)
def test_the_search_finds_a_page_by_the_word_that_people_use(word: str, page: str) -> None:
    """The search of the site ranks headings first."""
    headings = [line for line in (ROOT / "docs" / page).read_text().splitlines() if line.startswith("#")]
    assert any(word.lower() in heading.lower() for heading in headings), "a heading has the word"


def test_the_navigation_has_the_sections_of_the_first_page() -> None:
    assert [name for section in NAV for name in section] == ["Home", "Get started", "How-to guides", "Reference", "Explanation", "Project"]
    assert {title for _, title, _ in home.DOORS} <= {name for section in NAV for name in section}


@pytest.mark.parametrize("file", sorted(PLACES))
def test_the_links_of_a_page_lead_somewhere_on_the_site(file: str) -> None:
    text = pages.staged((ROOT / file).read_text(), file, PLACES[file], PLACES)
    known = {*PLACES.values(), *(picture.relative_to(pages.DOCS).as_posix() for kind in ("*.svg", "*.png") for picture in pages.written(kind))}
    for link in (match[2] for match in pages.LINK.finditer("".join(part for part in pages.CODE.split(text) if not part.startswith("`")))):
        if "://" in link or link.startswith(("#", "mailto:")):
            continue
        assert posixpath.normpath(posixpath.join(posixpath.dirname(PLACES[file]), link.partition("#")[0])) in known, link


def test_a_link_leads_within_the_site_or_to_the_repository() -> None:
    def link(target: str) -> str:
        return pages.link(target, "docs/how-to/x.md", "how-to/x.md", {"docs/jobs.md": "jobs.md", "CONTRIBUTING.md": "project/contributing.md"})

    assert link("../jobs.md#options") == "../jobs.md#options"
    assert link(pages.FILE + "docs/jobs.md") == "../jobs.md"
    assert link("../../CONTRIBUTING.md") == "../project/contributing.md"
    assert link("../../examples/python/hello.py") == pages.FILE + "examples/python/hello.py"
    assert link("../../examples/python") == pages.FOLDER + "examples/python"
    assert link("../watch.png") == "../watch.png"
    assert link("https://example.com/") == "https://example.com/" and link("#here") == "#here"
    with pytest.raises(pages.Missing, match="nowhere"):
        link("../nowhere.md")


def block(language: str) -> str:
    return f"```{language}\n{language[0]}\n```\n"


def test_one_example_in_several_languages_becomes_tabs() -> None:
    three = f"Text.\n\n{block('python')}\n{block('js')}\n{block('rust,no_run')}\nMore.\n"
    tab = '=== "{}"\n\n    ```{}\n    {}\n    ```\n\n'
    tabs = tab.format("Python", "python", "p") + tab.format("Node.js", "js", "j") + tab.format("Rust", "rust", "r")
    assert pages.tabs(three) == f"Text.\n\n{tabs}\n\nMore.\n"
    labels = f"Text. In Python:\n\n{block('python')}\nNode:\n\n{block('js')}\nRust:\n\n{block('rust')}\nMore.\n"
    assert pages.tabs(labels) == f"Text.\n\n{tabs}\n\nMore.\n"


@pytest.mark.parametrize("between", ["Text.\n\n", "## In Node\n\n"])
def test_blocks_with_a_text_between_them_stay_blocks(between: str) -> None:
    text = f"{block('python')}\n{between}{block('js')}"
    assert pages.tabs(text) == text
    same = f"{block('python')}\n{block('python')}"
    assert pages.tabs(same) == same


def test_a_page_has_no_hidden_lines_of_rustdoc_and_no_comments_of_tests() -> None:
    assert pages.fence("rust,ignore", "# async fn f() {\n#[derive(Debug)]\nlet a = 1;\n# }\n") == "```rust\n#[derive(Debug)]\nlet a = 1;\n```"
    assert pages.uncommented("a\n<!-- x:begin -->\n| b |\n<!-- y -->\n| c |\n") == "a\n\n| b |\n| c |\n"


def test_a_list_within_a_paragraph_is_a_list() -> None:
    assert pages.spaced("It needs:\n* a\n* b,\n  c\n\n- d\n\n```sh\na\n- b\n```\n") == "It needs:\n\n* a\n* b,\n  c\n\n- d\n\n```sh\na\n- b\n```\n"


def test_the_first_page_has_the_first_screen_and_all_pages() -> None:
    text = home.home(PLACES)
    assert "Distributed locks" in text and text.count('class="door"') == 4 and '=== "Rust"' in text
    assert "(servers.md)" in text and pages.FILE + "docs/" not in text


def test_the_reference_of_python_has_each_name_once(tmp_path: Path) -> None:
    python_reference.stage(tmp_path / "modules", tmp_path / "pages")
    names = [name for _, listed in python_reference.PAGES.values() for name in listed]
    assert len(names) == len(set(names))
    for module in (tmp_path / "modules/locktender").glob("*.py"):
        assert not re.search(r":(?:exc|meth|class|func|attr):`", module.read_text()), module.name
    text = (tmp_path / "modules/locktender/_native_lock.py").read_text()
    assert "[`Client.lock`][locktender.Client.lock]" in text and "[`skip_if_busy`][locktender.Lock.skip_if_busy]" in text


def test_the_options_of_a_docstring_become_a_list() -> None:
    names = python_reference.Names({})
    text = "One ``a``.\n\n    code(1)\n\n``a``, ``b``\n    First\n    line. See :exc:`E`.\n\n        more()\n\nEnd. ::\n\n    last()\n"
    assert python_reference.markdown(text, names, None) == (
        "One `a`.\n\n```python\ncode(1)\n```\n\n`a`, `b`\n\n:   First\n    line. See `E`.\n\n    ```python\n    more()\n    ```\n\nEnd.\n\n```python\nlast()\n```"
    )


def test_the_reference_of_node_names_what_it_exports() -> None:
    types = (ROOT / "bindings-node/public-types.txt").read_text()
    for name in (name for _, patterns in node_reference.PAGES.values() for name in patterns if "*" not in name):
        assert re.search(rf"\b{name}\b", types), name


def test_a_link_or_a_script_that_leads_elsewhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/index.html").write_text('<h2 id="here"></h2><a href="../#there"></a><a href="#here"></a><img src="x.png">')
    (tmp_path / "index.html").write_text(
        '<a id="there" href="a/#here"></a><a href="a/#gone"></a><a href="b/"></a><script src="https://cdn.example/x.js"></script>'
    )
    assert [fault.partition(finish.SITE)[2] for fault in finish.faults(tmp_path)] == [
        "a/: no page x.png",
        ": no anchor a/#gone",
        ": no page b/",
        " loads https://cdn.example/x.js",
    ]


def test_what_builds_the_site_is_pinned() -> None:
    lines = [line for line in (SITE / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
    wanted = json.loads((SITE / "package.json").read_text())["devDependencies"]
    shared = json.loads((ROOT / "package.json").read_text())["devDependencies"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in wanted.values())
    assert {name: shared[name] for name in wanted.keys() & shared.keys()} == {name: wanted[name] for name in wanted.keys() & shared.keys()}
    assert '"resolved"' not in (SITE / "package-lock.json").read_text()
