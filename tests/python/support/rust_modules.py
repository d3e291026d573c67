"""The modules of a Rust crate, and which of them need which: a name counts where it is defined, not where it is exported again."""

import re
from pathlib import Path

# Texts and comments, in one expression: either may look like the begin of the other.
PROSE = re.compile(r'''r(#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])'|//[^\n]*|/\*.*?\*/''', re.S)
TEST_FILE = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+);")
TEST_ITEM = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*")
USE = re.compile(r"^\s*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", re.M)
PATH = re.compile(r"\b(?:crate|super|self)(?:::\w+)+")


def without_tests(text):
    """The source without comments, texts and the items that only tests have."""
    text = PROSE.sub(lambda prose: "" if prose[0].startswith("/") else '""', text)
    while match := TEST_ITEM.search(text):
        end, depth = match.end(), 0
        while end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
            if depth == 0 and text[end - 1] in ";}":
                break
        text = text[: match.start()] + text[end:]
    return text


def unfolded(tree):
    """The paths of a `use`, as (path, the name that it gets here)."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    if brace:
        parts, depth, start = [], 0, 0
        body = rest.rsplit("}", 1)[0]
        for at, sign in enumerate(body + ","):
            depth += {"{": 1, "}": -1}.get(sign, 0)
            if sign == "," and depth == 0:
                parts.append(body[start:at])
                start = at + 1
        for part in filter(str.strip, parts):
            yield from unfolded(head.strip() + part.strip())
        return
    path, _, name = tree.partition(" as ")
    words = [word.strip() for word in path.split("::")]
    if words[-1] == "self":
        words.pop()
    yield words, name.strip() or words[-1]


class Crate:
    """The modules below a folder of sources, by their paths, such as `op::reply`; the root is the empty path."""

    def __init__(self, sources: Path):
        self.texts, self.files, tests = {}, {}, set()
        for file in sorted(sources.rglob("*.rs")):
            if file.stem == "tests" or file.stem.endswith("_tests"):
                continue
            parts = file.relative_to(sources).with_suffix("").parts
            path = "::".join(parts[:-1] if parts[-1] in ("mod", "lib") else parts)
            source = file.read_text()
            tests.update("::".join(filter(None, [path, name])) for name in TEST_FILE.findall(source))
            self.texts[path] = without_tests(source)
            self.files[path] = file.relative_to(sources).as_posix()
        for path in tests & self.texts.keys():
            del self.texts[path]
        self.exports = {path: {} for path in self.texts}
        for path, text in self.texts.items():
            for public, tree in USE.findall(text):
                for words, name in unfolded(tree) if public else ():
                    self.exports[path][name] = self.absolute(path, words)

    def absolute(self, module, words):
        """The words of a path from the root; `None` for one of another crate."""
        at, words = module.split("::") if module else [], list(words)
        if words[0] == "crate":
            return words[1:]
        if words[0] not in ("self", "super"):
            return at + words if "::".join([*at, words[0]]) in self.texts else None
        while words and words[0] in ("self", "super"):
            if words.pop(0) == "super":
                at = at[:-1]
        return at + words

    def defined(self, words):
        """The module in which the item of a path is defined."""
        for _ in range(8):
            module, rest = "", list(words)
            while rest and "::".join(filter(None, [module, rest[0]])) in self.texts:
                module = "::".join(filter(None, [module, rest.pop(0)]))
            further = self.exports[module].get(rest[0]) if rest else None
            if further is None:
                return module
            words = further + rest[1:]
        return module

    def needs(self, module):
        """The modules that a module needs, each with the path by which it names them."""
        text, needed = self.texts[module], {}
        paths = [words for public, tree in USE.findall(text) if not public for words, _ in unfolded(tree)]
        body = USE.sub("", text)
        paths += [path.split("::") for path in PATH.findall(body)]
        for words in paths:
            absolute = self.absolute(module, words)
            if absolute is not None:
                needed.setdefault(self.defined(absolute), "::".join(words))
        return {other: path for other, path in needed.items() if other not in ("", module)}

    def graph(self):
        return {module: set(self.needs(module)) for module in self.texts if module}
