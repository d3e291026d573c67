"""Pages: what the site shows, and each page's Markdown as the generator takes it.

The pages in the repository are written for GitHub. A copy of each gets links that lead within the site, examples in several languages as
tabs, and no comments that only tests read.
"""

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GITHUB = "https://github.com/locktender/locktender/"
FILE = GITHUB + "blob/main/"
FOLDER = GITHUB + "tree/main/"

# Pages that are not in docs/: where they are in the repository, and where on the site.
ELSEWHERE = {
    "bindings-python/README.md": "start/python.md",
    "bindings-node/README.md": "start/node.md",
    "core/README.md": "start/rust.md",
    "examples/dashboards/README.md": "how-to/dashboards.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "CODE_OF_CONDUCT.md": "project/code-of-conduct.md",
    "tests/README.md": "project/tests.md",
}
# Titles for the pages whose first heading is the name of the project.
TITLES = {"start/python.md": "Python", "start/node.md": "Node.js", "start/rust.md": "Rust"}
LANGUAGES = {"python": "Python", "js": "Node.js", "ts": "Node.js", "rust": "Rust"}

FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A link or an image with its address; `[name]: address`; an image of HTML.
LINK = re.compile(r'(\]\(|^\[[^\]\n]+\]: |src=")([^)\s"]+)', re.MULTILINE)
CODE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
# A paragraph that only says which language comes next: a tab says it.
LABEL = re.compile(r"^(?:In )?(?:Python|Node|Node\.js|Rust):$", re.MULTILINE)
COMMENT = re.compile(r"^<!--[^\n]*-->\n", re.MULTILINE)


class Missing(Exception):
    """A link that leads nowhere."""


def written(pattern: str) -> list[Path]:
    """The files of docs/ and of its folders, but of those below: this folder has one for what it builds."""
    return [path for place in (pattern, f"*/{pattern}") for path in sorted(DOCS.glob(place))]


def sources() -> dict[str, str]:
    """Every page of the site that a person wrote: its place on the site, and its file in the repository."""
    own = {path.relative_to(DOCS).as_posix(): path.relative_to(ROOT).as_posix() for path in written("*.md")}
    return own | {page: file for file, page in ELSEWHERE.items()}


def listed(nav: object) -> list[str]:
    """The pages in a navigation, in their order, without links to other sites."""
    if isinstance(nav, str):
        return [] if "://" in nav else [nav]
    entries = nav.values() if isinstance(nav, dict) else nav
    assert isinstance(entries, (list, type({}.values())))
    return [page for entry in entries for page in listed(entry)]


def link(target: str, file: str, page: str, places: dict[str, str]) -> str:
    """An address in a file of the repository, as the page of the site needs it. `places`: the pages of the site by their file."""
    ours = target.startswith((FILE, "https://raw.githubusercontent.com/locktender/locktender/main/"))
    if not ours and (target.startswith(("#", "mailto:")) or "://" in target):
        return target
    path, mark, anchor = re.sub(r"^https://[^#]+?/main/", "", target).partition("#")
    path = posixpath.normpath(path if ours else posixpath.join(posixpath.dirname(file), path))
    if not (ROOT / path).exists():
        raise Missing(f"{file}: {target}")
    if path in places or path.startswith("docs/") and not path.endswith(".md"):
        place = places.get(path, path.removeprefix("docs/"))
        return posixpath.relpath(place, posixpath.dirname(page) or ".") + mark + anchor
    return (FOLDER if (ROOT / path).is_dir() else FILE) + path + mark + anchor


def outside_code(change, text: str) -> str:
    """The text with `change` made to all of it but its code."""
    return "".join(part if part.startswith("`") else change(part) for part in CODE.split(text))


def fence(language: str, code: str) -> str:
    """A block of code without what only rustdoc reads: attributes after the language, and hidden lines."""
    language = language.partition(",")[0]
    if language == "rust":
        code = re.sub(r"^ *#(?: .*)?\n", "", code, flags=re.MULTILINE)
    return f"```{language}\n{code}```"


def tabs(text: str) -> str:
    """The same example in several languages, one block after the other, as tabs."""
    done: list[str] = []
    at = 0
    run: list[tuple[str, str]] = []

    def end() -> None:
        if len(run) == 1:
            done.append(fence(*run[0]))
        elif run:
            done[-1] = re.sub(r"(?:\A|\s+)(?:In )?(?:Python|Node|Node\.js|Rust):\s*\Z", "\n\n", done[-1])
        for language, code in run if len(run) > 1 else []:
            block = "".join(f"    {line}".rstrip() + "\n" for line in fence(language, code).splitlines())
            done.append(f'=== "{LANGUAGES[language.partition(",")[0]]}"\n\n{block}\n')
        run.clear()

    for match in FENCE.finditer(text):
        between = text[at : match.start()]
        name = LANGUAGES.get(match[1].partition(",")[0])
        known = {LANGUAGES[language.partition(",")[0]] for language, _ in run}
        if LABEL.sub("", between).strip() or not name or not known or name in known:
            end()
            done.append(between)
        if name:
            run.append((match[1], match[2]))
        else:
            done.append(fence(match[1], match[2]))
        at = match.end()
    end()
    return "".join(done) + text[at:]


def uncommented(text: str) -> str:
    """The text without comments. A list or a table after one needs an empty line, the rest of a table none."""

    def gap(match: re.Match[str]) -> str:
        inside = text[: match.start()].endswith("|\n") and text.startswith("|", match.end())
        return "" if inside else "\n"

    return COMMENT.sub(gap, text)


def spaced(text: str) -> str:
    """The text with an empty line before each list: the generator sees none that begins within a paragraph."""
    blocks = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    before = re.compile(r"^((?![*+-] |\d+\. |[\s|#]).+)\n(?=[*+-] )", re.MULTILINE)
    return "".join(block if block.startswith("```") else before.sub(r"\1\n\n", block) for block in blocks)


def staged(text: str, file: str, page: str, places: dict[str, str]) -> str:
    """The Markdown of one page as the generator takes it."""
    text = spaced(uncommented(text))
    text = outside_code(lambda part: LINK.sub(lambda match: match[1] + link(match[2], file, page, places), part), text)
    # A bar in code within a table: GitHub needs the backslash, and the generator would show it.
    text = re.sub(r"^\|.*", lambda row: re.sub(r"`[^`]+`", lambda code: code[0].replace("\\|", "|"), row[0]), text, flags=re.MULTILINE)
    if page in TITLES:
        text = re.sub(r"\A# .*", f"# {TITLES[page]}", text)
    text = tabs(text)
    # The space of an empty table of contents is for a wide table.
    return text if re.search("^## ", text, re.MULTILINE) else f"---\nhide: [toc]\n---\n\n{text}"


def stage(out: Path) -> None:
    """Copies all pages and pictures. Raises an exception with all links that lead nowhere."""
    pages = sources()
    places = {file: page for page, file in pages.items()}
    dead = []
    for page, file in pages.items():
        try:
            text = staged((ROOT / file).read_text(), file, page, places)
        except Missing as missing:
            dead.append(str(missing))
            continue
        write(out / page, text)
    for picture in (*written("*.svg"), *written("*.png")):
        target = out / picture.relative_to(DOCS)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(picture.read_bytes())
    if dead:
        raise Missing("\n".join(dead))


def write(path: Path, text: str) -> None:
    """Writes a file, in a folder that may not be there yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
