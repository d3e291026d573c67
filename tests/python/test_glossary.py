"""Words that no text for people has any more: the list is CONTRIBUTING.md's."""

import re
from pathlib import Path

import pytest
from support.help import help_texts
from support.page import paths

ROOT = Path(__file__).parents[2]
LIST = re.search(r"^\| no more \| instead \|\n\|[ -|]+\n((?:\|.*\n)+)", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
assert LIST, "the list of words"
WORDS = [word.strip() for row in LIST[1].splitlines() for word in row.split("|")[1].split(",")]
# In the list `…` stands for a few words.
BANNED = re.compile(r"\b(?:" + "|".join(word.replace(" … ", r" (?:\S+ ){1,6}") for word in WORDS) + r")\b")

PAGES = [ROOT / "README.md", *paths()]
STUBS = [*sorted((ROOT / "bindings-python/python/locktender").glob("*.pyi")), ROOT / "bindings-python/python/locktender/errors.py"]
CORE = [path for path in sorted((ROOT / "core").rglob("*.rs")) if not path.stem.endswith("_tests") and path.stem != "tests"]


def prose(markdown: str) -> str:
    """A page without its code."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", markdown, flags=re.DOTALL | re.MULTILINE))


def comments(text: str, mark: str) -> str:
    return "\n".join(re.findall(mark, text, re.DOTALL | re.MULTILINE))


def found(text: str) -> list[str]:
    return [text[max(0, match.start() - 40) : match.end() + 30].replace("\n", " ") for match in BANNED.finditer(text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_no_page_has_such_a_word(page: Path):
    assert found(prose(page.read_text())) == []


@pytest.mark.parametrize("stub", STUBS, ids=lambda path: path.name)
def test_no_docstring_has_such_a_word(stub: Path):
    text = comments(stub.read_text(), r'""".*?"""')
    assert found(re.sub(r"``[^`]*``|^ {12,}.*$", "", text, flags=re.MULTILINE)) == []


def test_no_type_of_node_has_such_a_word():
    text = comments((ROOT / "bindings-node/public-types.txt").read_text(), r"/\*\*.*?\*/")
    assert found(re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)) == []


def test_no_help_has_such_a_word():
    assert found("\n".join(help_texts().values())) == []


def test_no_error_has_such_a_word():
    """Texts of more than one word: what one word alone is, is a name."""
    for path in CORE:
        code = path.read_text().split("#[cfg(test)]\nmod tests", 1)[0]
        code = re.sub(r"^\s*//.*$", "", code, flags=re.MULTILINE)
        texts = [text for text in re.findall(r'"((?:[^"\\]|\\.)*)"', code, re.DOTALL) if " " in text]
        assert found("\n".join(re.sub(r"\{[^}]*\}|`[^`]*`", "", text) for text in texts)) == [], path
