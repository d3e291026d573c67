"""Counts the lines of code of the product: `tests/lines.py [REVISION]`, by part, with their bytes.

Blank lines, comments, docstrings and tests don't count: neither files of tests nor the modules `tests` inside of files.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PARTS = {
    "core": ("core/src", "core/cli/src"),
    "python": ("bindings-python/src", "bindings-python/python"),
    "node": ("bindings-node/src", "bindings-node/lib"),
}
COMMENTS = {".rs": ("//",), ".lua": ("--",), ".ts": ("//", "/*", "*"), ".js": ("//", "/*", "*"), ".css": ("/*",), ".html": ("<!--",), ".py": ("#",)}
TESTS = re.compile(r"(_tests?|/tests)\.rs$|/tests/|\.pyi$|generated")


def files_of(revision: str | None) -> dict[str, str]:
    """The product's files with their text, of the checkout or of a revision."""
    listed = ["git", "ls-tree", "-r", "--name-only", revision] if revision else ["git", "ls-files", "-co", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    wanted = [name for name in names if Path(name).suffix in COMMENTS and not TESTS.search(name)]
    wanted = [name for name in wanted if name.startswith(tuple(path for paths in PARTS.values() for path in paths))]
    if revision is None:
        return {name: (ROOT / name).read_text() for name in wanted if (ROOT / name).exists()}
    show = ["git", "show", *(f"{revision}:{name}" for name in wanted)]
    return {name: subprocess.run([*show[:2], f"{revision}:{name}"], cwd=ROOT, capture_output=True, text=True, check=True).stdout for name in wanted}


def without_tests(text: str) -> str:
    """Rust without the modules of tests, which end where a line begins with a brace."""
    return re.sub(r"(?ms)^#\[cfg\((?:test|all\(test[^\n]*)\)\]\n(?:#\[[^\n]*\n)*(?:pub(?:\([a-z]+\))? )?mod \w+ \{\n.*?^\}\n", "", text)


def without_docstrings(text: str) -> str:
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - node.lineno + 1)
    return "\n".join(lines)


def code_of(name: str, text: str) -> list[str]:
    suffix = Path(name).suffix
    if suffix == ".rs":
        text = without_tests(text)
    elif suffix == ".py":
        text = without_docstrings(text)
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith(COMMENTS[suffix])]


def main() -> None:
    files = files_of(sys.argv[1] if len(sys.argv) > 1 else None)
    total = [0, 0]
    for part, paths in PARTS.items():
        code = [line for name, text in files.items() if name.startswith(paths) for line in code_of(name, text)]
        size = sum(len(line.encode()) for line in code)
        total = [total[0] + len(code), total[1] + size]
        print(f"{part:8} {len(code):7} lines {size:9} bytes")
    print(f"{'all':8} {total[0]:7} lines {total[1]:9} bytes")


if __name__ == "__main__":
    main()
