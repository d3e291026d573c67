"""Words that no text for people has any more: the list is CONTRIBUTING.md's. Pages and stubs have no `REPLACED` ones either."""

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

# Phrases that a reader who learned English at school takes two ways, and what pages and stubs say instead.
REPLACED = {
    r"\b[Gg](?:ive|ives|iven|iving|ave) (?:\S+ ){0,3}back\b": "release, return",
    r"\bcall(?:s|ed|ing)? (?:\S+ )?off\b": "cancel",
    r"\b[Pp]art by part\b": "in batches",
    r"\b(?:troubles|[Ww]alks?)\b": "failures, runbook",
    r"\b(?:[Ww]ent on|for so long)\b": "continued, for this long",
    r"\b[Ss]t(?:and|ands|ood) (?:in|before|behind|beside|still|on|the)\b|\b[Ii]n (?:no )?line\b": "is in the queue, precedes, hangs, is queued",
    r"\b(?:a|the|an?other|each|one|next|first|last|two|between) looks?\b(?!-)": "check, poll",
    r"(?:^|[.:] |\| )Else\b": "Otherwise",
    r"(?i)\b(?:behaviour|favour|honour|colour|neighbour|licence|(?:recogn|optim|organ|synchron|initial|summar)is(?:e|ed|es|ing|ation))s?\b": "US spelling",
}

README = "README.md"
PAGES = [ROOT / README, *paths()]
PACKAGES = [ROOT / package / README for package in ("bindings-python", "bindings-node", "core", "core/cli")]
STUBS = [*sorted((ROOT / "bindings-python/python/locktender").glob("*.pyi")), ROOT / "bindings-python/python/locktender/errors.py"]
CORE = [path for path in sorted((ROOT / "core").rglob("*.rs")) if not path.stem.endswith("_tests") and path.stem != "tests"]


def prose(markdown: str) -> str:
    """A page without its code."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", markdown, flags=re.DOTALL | re.MULTILINE))


def comments(text: str, mark: str) -> str:
    return "\n".join(re.findall(mark, text, re.DOTALL | re.MULTILINE))


def found(text: str) -> list[str]:
    return [text[max(0, match.start() - 40) : match.end() + 30].replace("\n", " ") for match in BANNED.finditer(text)]


def replaced(text: str) -> list[str]:
    """The phrases of `REPLACED` in a text, each with its surroundings and what to say."""
    return [
        f"{text[max(0, match.start() - 40) : match.end() + 30]} (say: {say})".replace("\n", " ")
        for phrase, say in REPLACED.items()
        for match in re.finditer(phrase, text, re.MULTILINE)
    ]


@pytest.mark.parametrize("page", [*PAGES, *PACKAGES, ROOT / "CONTRIBUTING.md"], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_page_has_a_replaced_phrase(page: Path):
    """In code, in names and in what a program prints they may be."""
    assert replaced(prose(page.read_text())) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_no_page_has_such_a_word(page: Path):
    assert found(prose(page.read_text())) == []


@pytest.mark.parametrize("stub", STUBS, ids=lambda path: path.name)
def test_no_docstring_has_such_a_word(stub: Path):
    text = comments(stub.read_text(), r'""".*?"""')
    text = re.sub(r"``[^`]*``|^ {12,}.*$", "", text, flags=re.MULTILINE)
    assert [*found(text), *replaced(text)] == []


def test_no_type_of_node_has_such_a_word():
    text = comments((ROOT / "bindings-node/public-types.txt").read_text(), r"/\*\*.*?\*/")
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    assert [*found(text), *replaced(text)] == []


def test_no_public_comment_of_rust_has_such_a_word():
    for path in (path for part in ("api", "error", "options") for path in (ROOT / "core/src" / part).rglob("*.rs")):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", comments(path.read_text(), r"^\s*/// ?(.*?)$"), flags=re.DOTALL)
        assert [*found(text), *replaced(text)] == [], path


def test_no_help_has_such_a_word():
    assert found("\n".join(help_texts().values())) == []


def test_no_error_has_such_a_word():
    """Texts of more than one word: what one word alone is, is a name."""
    for path in CORE:
        code = path.read_text().split("#[cfg(test)]\nmod tests", 1)[0]
        code = re.sub(r"^\s*//.*$", "", code, flags=re.MULTILINE)
        texts = [text for text in re.findall(r'"((?:[^"\\]|\\.)*)"', code, re.DOTALL) if " " in text]
        assert found("\n".join(re.sub(r"\{[^}]*\}|`[^`]*`", "", text) for text in texts)) == [], path
