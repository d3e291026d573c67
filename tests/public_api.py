"""Public API: what Rust programs can name of the crate, as one committed text, so that a change of it shows in a review.

`python3 tests/public_api.py` writes core/public-api.txt anew; with `--check` it compares, and looks for methods without an example.
The signatures are rustdoc's own, read from its pages: what is hidden from the documentation is not public.
"""

import difflib
import html.parser
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMITTED = ROOT / "core/public-api.txt"

# The kinds of items, as the names of their pages begin.
KINDS = ("constant", "enum", "fn", "macro", "static", "struct", "trait", "type", "union")

# The parts of a page that belong to the item. What the standard library implements for every type does not.
OWN = {"fields", "variants", "implementations", "required-methods", "provided-methods", "required-associated-types"}
OF_TRAITS = {"trait-implementations", "synthetic-implementations"}

# Traits that no program asks for, and that the compiler adds to from release to release.
UNASKED = {"Drop", "StructuralPartialEq", "Unpin"}
UNASKED |= {sign + name for sign in ("", "!") for name in ("Freeze", "RefUnwindSafe", "UnsafeUnpin", "UnwindSafe")}

# An implementation without conditions: those of a type stand on one line.
PLAIN = re.compile(r"impl(?:<'?\w+>)? (\S+) for (\S+)")

# What a reader expects of a generic type: it can be sent if its content can.
EXPECTED = re.compile(r"impl<(\w+)> (Send|Sync) for \w+<\1> where \1: \2")

MEMBER = re.compile(r"(?:method|tymethod|structfield|associatedconstant|associatedtype|variant)\.(.+)")

# Types whose every method must show how it is used.
WITH_EXAMPLES = ("Call", "Client", "ClientBuilder", "Hold", "Lock", "Error")


class Page(html.parser.HTMLParser):
    """A page of rustdoc: the item's declaration, its members and traits, and which members have examples."""

    def __init__(self, text):
        super().__init__()
        self.declaration, self.members, self.traits = "", [], []
        self.with_examples, self.methods = set(), set()
        self._part, self._subject, self._taken = None, None, None
        self._end, self._depth = None, 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        identity, classes = attributes.get("id") or "", (attributes.get("class") or "").split()
        if self._taken is not None:
            self._depth += tag == self._end
            self._taken += " " if "where" in classes or tag == "br" else ""
            return
        if tag == "h2" and identity:
            self._part = identity
        elif tag in ("section", "span") and (member := MEMBER.fullmatch(identity)):
            self._subject = member[1]
        elif tag == "section" and "impl" in classes:
            self._subject = None
        if "item-decl" in classes or "code-header" in classes or (tag == "code" and self._field()):
            self._taken, self._end, self._depth = "", tag, 1
        if "rust-example-rendered" in classes and self._part == "implementations":
            self.with_examples.add(self._subject)

    def _field(self):
        """Whether a piece of code that begins here declares a field: the first one behind its id."""
        return self._part in ("fields", "variants") and self._subject not in {None, *(name for name, _ in self.members)}

    def handle_data(self, data):
        if self._taken is not None:
            self._taken += data

    def handle_endtag(self, tag):
        if self._taken is None or tag != self._end:
            return
        self._depth -= 1
        if self._depth:
            return
        text, self._taken = plain(self._taken), None
        if self._part is None:
            self.declaration = self.declaration or text
        elif self._part in OWN and self._subject:
            self.members.append((self._subject, text))
            if self._part == "implementations" and " fn " in f" {text}":
                self.methods.add(self._subject)
        elif self._part in OF_TRAITS and self._subject is None:
            self.traits.append(text)


def plain(text):
    """A signature on one line."""
    text = " ".join(text.replace("ⓘ", "").replace("(/* private fields */)", "").split())
    return re.sub(r",? \)", ")", text.replace("( ", "(")).rstrip(",")


def build():
    """The pages as they are now; a link to what isn't there fails."""
    command = ["cargo", "doc", "--quiet", "--locked", "--no-deps", "-p", "locktender", "--features", "testing"]
    # As a test it is started with the variables of its own package. Build scripts read them, and all would be built again.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("CARGO_PKG_", "CARGO_MANIFEST_"))}
    if subprocess.run(command, cwd=ROOT, env={**environment, "RUSTDOCFLAGS": "-D warnings"}).returncode:
        raise SystemExit("rustdoc failed")
    metadata = subprocess.check_output(["cargo", "metadata", "--no-deps", "--format-version", "1"], cwd=ROOT)
    return Path(json.loads(metadata)["target_directory"]) / os.environ.get("CARGO_BUILD_TARGET", "") / "doc/locktender"


def pages(folder):
    """Every public item's path, kind and page."""
    for address in re.findall(r'<li><a href="([^"#]+)"', (folder / "all.html").read_text()):
        *modules, file = address.split("/")
        kind, name, _ = file.split(".")
        if kind not in KINDS:
            raise SystemExit(f"{address}: an item of an unknown kind; see KINDS")
        yield "::".join([*modules, name]), kind, Page((folder / address).read_text())


def named(path, name, text):
    """A declaration with the item's whole path where its name stands."""
    return re.sub(rf"\b{re.escape(name)}\b", lambda _: path, text, count=1)


def head(declaration):
    """A declaration without its body: fields, variants and methods have lines of their own."""
    declaration = re.sub(r"^((?:#\[[^\]]*\] *)*)", lambda attributes: " ".join(attributes[1].split()) + " ", declaration)
    return re.sub(r" \{.*\}$|;$", "", declaration.strip())


def implementations(path, traits):
    """What the item implements: the traits without conditions together, then each with conditions. An implementation for another type is
    listed there."""
    is_here = re.compile(rf".* for [&'\w ]*\b{re.escape(path.rpartition('::')[2])}\b.*")
    found = [(text, PLAIN.fullmatch(text)) for text in traits if is_here.fullmatch(text) and not EXPECTED.fullmatch(text)]
    conditional = [f"{path}: {text}" for text, plain in found if not plain and not UNASKED & set(re.findall(r"!?\w+(?= for )", text))]
    of = {plain[2] for _, plain in found if plain}
    together = {whom: sorted({plain[1] for _, plain in found if plain and plain[2] == whom} - UNASKED) for whom in of}
    return sorted([f"{path}: impl {' + '.join(names)} for {whom}" for whom, names in together.items() if names] + conditional)


def lines(path, kind, page):
    """The item's lines, each with what it is sorted by."""
    name = path.rpartition("::")[2]
    if not page.declaration:
        raise SystemExit(f"{path}: rustdoc's page has no declaration where it was looked for")
    yield (path, ""), named(path, name, head(page.declaration))
    for member, text in page.members if kind != "type" else ():
        last = member.rpartition(".")[2]
        whole = f"{path}::{member.replace('.field.', '::')}"
        yield (path, f"1{whole}"), named(whole, last, text)
    for text in implementations(path, page.traits):
        yield (path, f"2{text}"), text


def reexports(folder):
    """What the crate's root names beside its own items."""
    text = re.sub(r"<[^>]+>", "", (folder / "index.html").read_text().replace("<dt", "\n<dt"))
    for line in re.findall(r"^pub use (.+?);", text, re.MULTILINE):
        yield ("", line), f"pub use {line}"


def main(arguments):
    folder = build()
    found = list(pages(folder))
    rows = sorted([*reexports(folder), *(row for item in found for row in lines(*item))])
    text = "".join(f"{line}\n" for _, line in rows)
    if arguments != ["--check"]:
        COMMITTED.write_text(text)
        return 0
    shown = [(path, page) for path, _, page in found if path in WITH_EXAMPLES]
    if len(shown) < len(WITH_EXAMPLES):
        raise SystemExit("a type of WITH_EXAMPLES is gone")
    bare = sorted(f"{path}::{method}" for path, page in shown for method in page.methods - page.with_examples)
    for method in bare:
        print(f"{method} has no example in its documentation")
    if text == COMMITTED.read_text():
        return 1 if bare else 0
    was = COMMITTED.read_text().splitlines()
    print("\n".join(difflib.unified_diff(was, text.splitlines(), "committed", "built", n=0, lineterm="")))
    print("The public API has changed. If this is meant: `python3 tests/public_api.py`, and read the diff.")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
