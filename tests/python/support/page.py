"""A page of the documentation: its blocks, links and anchors."""

import re
from pathlib import Path
from typing import NamedTuple

from .checkout import ROOT

FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LABEL = re.compile(r"<!-- recipe: (\S+) -->\n\Z")
LINK = re.compile(r"\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)$", re.MULTILINE)
# The pages of this checkout, as the README names them: PyPI shows it without the other files.
OURS = "https://github.com/locktender/locktender/blob/main/"
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


FOLDERS = ("", "tutorials", "how-to")


def paths() -> list[Path]:
    """The pages of docs/. Other folders there make a site of them."""
    return [path for folder in FOLDERS for path in sorted((ROOT / "docs" / folder).glob("*.md"))]


class Block(NamedTuple):
    """A block of code: its language, its text, and the name that a comment before it gives."""

    language: str
    text: str
    recipe: str | None


class Page:
    """One Markdown file."""

    def __init__(self, name: str) -> None:
        self.path = ROOT / name
        self.text = self.path.read_text()

    def blocks(self) -> list[Block]:
        """Every block, in order. What stands between ``` without being a block is an error."""
        found = [self._block(match) for match in FENCE.finditer(self.text)]
        assert self.text.count("```") == 2 * len(found), f"{self.path} has a block that doesn't end"
        return found

    def _block(self, match: re.Match[str]) -> Block:
        label = LABEL.search(self.text, 0, match.start())
        return Block(match[1], match[2], label and label[1])

    def recipes(self) -> dict[str, str]:
        """The blocks that have a name."""
        return {block.recipe: block.text for block in self.blocks() if block.recipe}

    def links(self) -> list[str]:
        """Where its links lead, outside of blocks."""
        return [inline or named for inline, named in LINK.findall(FENCE.sub("", self.text))]

    def anchors(self) -> set[str]:
        """What a link into the page may name after the #."""
        return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(FENCE.sub("", self.text))}
