"""What pages list must be so: options, error codes, events, reasons, subcommands and exit codes are those of the code. test_schemes has the URLs."""

import ast
import inspect
import re

import locktender
import pytest
from support.checkout import ROOT
from support.help import help_texts
from support.page import FENCE, Page, paths

STUBS = ROOT / "bindings-python/python/locktender"
TYPES = (ROOT / "bindings-node/public-types.txt").read_text()


def section(page: Page, title: str) -> str:
    """The text below a heading, up to the next one of its level."""
    found = re.search(rf"^(#+) {re.escape(title)}\n(.*?)(?=^\1 |\Z)", page.text, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[2]


def first_cells(text: str) -> list[list[str]]:
    """The words in code of the first two cells of each row of a table."""
    rows = re.findall(r"^\| (`[^|]*)\|([^|]*)\|", text, re.MULTILINE)
    return [[re.findall(r"`([\w-]+)`", cell) for cell in row] for row in rows]


# Options


def stubs() -> dict[str, set[str]]:
    """The options of Python: those of a lock, and what jobs, cron jobs and clients have besides."""
    options: dict[str, set[str]] = {}
    for module in ("_native_options", "_native_client"):
        for node in ast.parse((STUBS / f"{module}.pyi").read_text()).body:
            if not isinstance(node, ast.ClassDef):
                continue
            options[node.name] = {line.target.id for line in node.body if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)}
    return options


OPTIONS = [("Locks", "_LockOptions"), ("Jobs", "_JobOptions"), ("Cron jobs", "_CronJobOptions"), ("Clients", "_ClientOptions")]


@pytest.mark.parametrize(("title", "stub"), OPTIONS)
def test_the_page_on_options_has_those_of_python(title: str, stub: str) -> None:
    listed = {name for names, _ in first_cells(section(Page("docs/options.md"), title)) for name in names}
    assert listed == stubs()[stub]


@pytest.mark.parametrize(("title", "stub"), OPTIONS)
def test_the_page_on_options_has_the_names_of_node(title: str, stub: str) -> None:
    for names, of_node in first_cells(section(Page("docs/options.md"), title)):
        spelled = [re.sub(r"_(\w)", lambda letter: letter[1].upper(), name) for name in names]
        if not of_node:
            continue  # the row says which languages have it
        assert [name.removesuffix("Ms") for name in of_node] == spelled
        for name in of_node:
            assert re.search(rf"^ +{name}\??: ", TYPES, re.MULTILINE), name


def test_the_tables_of_other_pages_name_options_that_exist() -> None:
    known = set().union(*stubs().values())
    for name in ("jobs", "cron"):
        listed = [each for names, _ in first_cells(section(Page(f"docs/{name}.md"), "Options")) for each in names]
        assert listed and set(listed) <= known, name
    chosen = [each for names, _ in first_cells(Page("docs/how-to/choose-ttl.md").text) for each in names]
    assert chosen and set(chosen) <= known, chosen


# Errors


def errors() -> dict[str, type[locktender.LockError]]:
    kinds = [kind for kind in vars(locktender).values() if isinstance(kind, type) and issubclass(kind, locktender.LockError)]
    return {kind.code: kind for kind in kinds if kind is not locktender.LockError}


def test_the_page_on_errors_has_every_code_and_its_classes() -> None:
    page = Page("docs/errors.md")
    headings = re.findall(r"^## ([A-Z_]{3,})$", page.text, re.MULTILINE)
    source = (ROOT / "core/src/error/mod.rs").read_text()
    assert sorted(headings) == sorted(errors()) == sorted(re.findall(r'^    \w+ = "([A-Z_]+)",$', source, re.MULTILINE))
    for code, kind in errors().items():
        named = re.findall(r"`(\w+)`", section(page, code).strip().partition("\n")[0])
        base = [each.__name__ for each in kind.__mro__ if each.__module__ == "builtins" and each.__name__ not in ("Exception", "BaseException", "object", "OSError")]
        assert named[:1] == [kind.__name__] and named[1:] == base[:1], (code, named, base)


def test_every_page_names_codes_that_exist() -> None:
    words = set(errors()) | {"LOCK_LOST"}
    near = re.compile(r"`((?:ACQUIRE|LOCK|NOT|KEY|JOB|INVALID)_[A-Z]+|UNAVAILABLE|DENIED|DEADLOCK|CLOSED|FORKED|INTERNAL)`")
    for path in paths():
        assert set(near.findall(path.read_text())) <= words, path.name


# Events and reasons


def quoted(path: str, pattern: str) -> list[str]:
    found = re.findall(pattern, (ROOT / path).read_text(), re.MULTILINE)
    assert len(found) > 5
    return found


def test_the_page_on_observability_has_every_event_in_the_order_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (?:debug|info|warning|error)", section(Page("docs/observability.md"), "Events"), re.MULTILINE)
    assert rows == quoted("core/src/event/mod.rs", r'^    \w+ = "(\w+)",$')


REASONS = quoted("core/src/error/loss.rs", r'^    \w+ = "(\w+)",$')


def test_every_reason_of_a_loss_is_explained() -> None:
    listed = {name for names, _ in first_cells(section(Page("docs/how-to/troubleshooting.md"), "LOCK_LOST")) for name in names}
    assert listed == set(REASONS)
    (row,) = re.findall(r"^\| reason \| (.*) \|$", Page("docs/observability.md").text, re.MULTILINE)
    assert set(REASONS) - set(re.findall(r"`(\w+)`", row)) <= {"ended"}, "a hold that was handed over has no event `lost`"


# The command


HELP = help_texts()


def test_the_page_on_the_command_has_every_subcommand() -> None:
    page = Page("docs/command.md").text
    assert [name for name in HELP if name and f"locktender {name}" not in page] == []


@pytest.mark.parametrize("path", paths(), ids=lambda path: path.name)
def test_a_page_names_subcommands_that_exist(path: object) -> None:
    text = Page(str(path)).text
    code = [block for language, block in FENCE.findall(text) if language in ("sh", "bash", "crontab", "ini", "yaml")]
    code += re.findall(r"`(locktender [^`\n]*)`", FENCE.sub("", text))
    named = {word for each in code for word in re.findall(r"\blocktender ([a-z][a-z-]*)", re.sub(r"install .*| add .*|#.*", "", each))}
    assert named <= set(HELP) | {"help"}, path


def test_the_page_on_the_command_has_the_options_of_the_help() -> None:
    table = section(Page("docs/command.md"), "Options")
    cells = re.findall(r"^\| (.*?) \| ", table, re.MULTILINE)
    listed = {option for cell in cells for option in re.findall(r"`(--[a-z-]+)", cell)}
    running = ("run", "job", "cron-job", "lead", "hold")
    known = {option for name in running for option in re.findall(r"(--[a-z-]+)", HELP[name].split("Options:", 1)[1].split("Examples:", 1)[0])}
    assert known - {"--help"} <= listed
    assert listed <= known | set(re.findall(r"--[a-z-]+", HELP[""]))


def test_the_page_on_the_command_has_the_exit_codes_of_the_help() -> None:
    table = section(Page("docs/command.md"), "Exit codes")
    listed = {int(code) for row in re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE) for code in row.split(",")}
    known = {int(code) for text in HELP.values() for code in re.findall(r"^  (\d+) +\w", text.partition("Exit codes:")[2], re.MULTILINE)}
    assert known - {0} <= listed and listed <= known | {1}, (known, listed)


def test_variables_of_the_environment_exist() -> None:
    """What pages name, some source reads or sets; those of the tests are theirs."""
    sources = [path.read_text() for folder in ("core/src", "core/cli/src", "bindings-node/lib") for path in (ROOT / folder).rglob("*.[rt]s")]
    named = {name for path in paths() for name in re.findall(r"\bLOCKTENDER_(?!TEST_)[A-Z_]+[A-Z]", path.read_text())}
    assert [name for name in sorted(named) if not any(name in source for source in sources)] == []


def test_the_api_page_names_what_python_has() -> None:
    """In the cells of Python: methods of clients, locks, holds, jobs, elections."""
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \| [^|]+ \| [^|]+ \|$", Page("docs/api.md").text, re.MULTILINE)
    classes = [kind for kind in vars(locktender).values() if inspect.isclass(kind)]
    names = {name for kind in classes for name in dir(kind)} | set(dir(locktender))
    called = {name for row in rows for code in re.findall(r"`([^`]+)`", row) for name in re.findall(r"(?<![\"\w])(?:\w+\.)?([a-z]\w*)\(", code)}
    assert called and called - names == set()
