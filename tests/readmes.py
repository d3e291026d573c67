"""The READMEs of the packages: PyPI, crates.io and npm each show one of their own. What they share stands in the README of the checkout.

`python3 tests/readmes.py` copies it from there, between `<!-- NAME:begin -->` and `<!-- NAME:end -->`; `--check` only compares.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = [ROOT / package / "README.md" for package in ("bindings-python", "bindings-node", "core")]
SHARED = re.compile(r"(<!-- (\w+):begin -->\n)(.*?)(<!-- \2:end -->\n)", re.DOTALL)


def shared():
    """The parts that the packages take, by name."""
    return {name: text for _, name, text, _ in SHARED.findall((ROOT / "README.md").read_text())}


def renewed(text):
    """A package's README with the parts as they are now."""
    parts = shared()
    return SHARED.sub(lambda match: match[1] + parts[match[2]] + match[4], text)


def main():
    for page in PACKAGES:
        old = page.read_text()
        if old == renewed(old):
            continue
        if "--check" in sys.argv:
            sys.exit(f"{page.relative_to(ROOT)} has other texts than README.md: run python3 tests/readmes.py")
        page.write_text(renewed(old))


if __name__ == "__main__":
    main()
