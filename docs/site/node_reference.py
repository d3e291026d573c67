"""The reference of Node: the pages of TypeDoc, one for each export, put together to the same few pages as those of Python."""

import json
import posixpath
import re
import shutil
import subprocess
from pathlib import Path

from pages import ROOT, outside_code, write

BINDING = ROOT / "bindings-node"
MODULES = ("index", "testing", "influxdb", "opentelemetry", "prometheus")

# The pages, with the exports of each. What ends in `*` is a beginning. All other exports are on the page of the client.
PAGES = {
    "locks": (
        "Locks",
        [
            *("Lock", "MultiLock", "lock", "readLock", "semaphore", "multiLock", "withLock", "with*", "tryWith*", "TryOutcome", "LockOptions"),
            *("ReadLockOptions", "SemaphoreOptions", "MultiLockOptions", "AcquireOptions", "With*", "*LockCallback"),
            *("LockInfo", "OwnerFields", "Grant"),
        ],
    ),
    "holds": ("Holds", ["Hold", "MultiHold", "Release", "HoldInfo", "LossReason", "AdoptOptions", "ExtendOptions"]),
    "jobs": ("Jobs", ["Job", "job", "cronJob", "Attempt", "JobOptions", "CronJobOptions", "Job*", "NotRunReason", "FailOptions"]),
    "elections": ("Elections", ["Election", "election", "Leadership", "Leader", "LeaderWork", "Observation"]),
    "errors": ("Errors", ["LockError", "AcquireTimeoutError", "LockLostError", "*Error", "ServerFailure"]),
    "monitoring": (
        "Events and metrics",
        [
            *("LockEvent", "EventKind", "ClientEvents", "metrics", "Metrics", "Metric", "Sample", "registerMetrics", "Points", "PointsOptions"),
            *("LocktenderInstrumentation", "InstrumentationOptions", "TraceContext", "TracedOperation", "MetricRegister"),
        ],
    ),
    "testing": ("Testing", ["ScriptedServer", "Clock", "Seen"]),
    "client": ("Client", ["Client", "configure", "ClientOptions", "Credentials", "CredentialsProvider", "ServerReport", "*"]),
}
ORDER = ("client", "locks", "holds", "jobs", "elections", "errors", "monitoring", "testing")

OPTIONS = {
    "plugin": ["typedoc-plugin-markdown"],
    "readme": "none",
    "outputFileStrategy": "members",
    "skipErrorChecking": True,  # the native module may not be built
    "excludeInternal": True,
    "excludePrivate": True,
    "excludeExternals": True,
    "disableSources": True,
    "hidePageHeader": True,
    "hideBreadcrumbs": True,
    "useHTMLAnchors": True,
    "useCodeBlocks": True,
    "parametersFormat": "table",
    "sort": ["source-order"],
    "logLevel": "Error",
}
KINDS = ("Class", "Interface", "Type Alias", "Function", "Variable")
# Headings that only group what comes after them.
GROUPS = ("Properties", "Methods", "Accessors", "Constructors", "Events")
# Sections that say nothing to a reader.
DROPPED = ("Inherited from", "Overrides", "Implementation of", "Type Parameters")
LINK = re.compile(r"(?<!\\)\]\((?!\))([^)#\s]*)(?:#([^)\s]+))?\)")


def typedoc(tools: Path, out: Path) -> None:
    """Runs TypeDoc on the sources. `tools`: where its packages are installed."""
    shutil.rmtree(out, ignore_errors=True)
    compiler = {"rootDir": str(BINDING / "lib"), "noEmit": True, "typeRoots": [str(tools / "node_modules/@types")]}
    # Types of packages are found from where the sources are, or here.
    compiler["paths"] = {"*": [str(tools / "node_modules/*")]}  # type: ignore[assignment]
    write(
        tools / "tsconfig.json",
        json.dumps({"extends": str(BINDING / "tsconfig.json"), "compilerOptions": compiler, "include": [str(BINDING / "lib")]}),
    )
    settings = {**OPTIONS, "tsconfig": "tsconfig.json", "out": str(out), "entryPoints": [str(BINDING / f"lib/{module}.ts") for module in MODULES]}
    write(tools / "typedoc.json", json.dumps(settings))
    subprocess.run(["node", tools / "node_modules/typedoc/bin/typedoc", "--options", "typedoc.json"], cwd=tools, check=True)


def matches(pattern: str, name: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), name) is not None


def sections(text: str) -> list[tuple[int, str, str, str]]:
    """The parts of a page: the level of the heading, its anchor, its words, and the text below it."""
    text = re.sub(r"^\*\*\*\n\n?", "", text, flags=re.MULTILINE)
    text = re.sub(r'^<a id="([^"\n]+)"></a>\n\n(#+) ', r"\2 \1\t", text, flags=re.MULTILINE)
    found = []
    for part in re.split(r"^(?=#{1,6} )", text, flags=re.MULTILINE):
        head, _, rest = part.partition("\n")
        level, _, words = head.partition(" ")
        anchor, _, words = words.rpartition("\t")
        if level:
            found.append((len(level), anchor, words, rest))
    return found


def member(text: str, name: str, where: dict[str, str], page: str) -> str:
    """One export as a part of a page: its name as a heading, its members one level below, and bold words for all that is deeper.

    Members of a base class that is an export, too, are there. What is marked as deprecated is a method that only says where it is.
    """
    (_, _, title, text_of_all), *rest = sections(text)
    kind, _, title = title.partition(": ")
    assert kind in KINDS, title
    title = title.partition("\\<")[0]  # without its type parameters
    members: list[list[tuple[int, str, str, str]]] = [[]]
    for section in rest:
        level, anchor, words, _ = section
        if level == 3 and (anchor or words == "Constructor") or words in GROUPS:
            members.append([])
        members[-1].append(section)
    done = [f"## {title} {{#{name}}}\n{text_of_all}"]
    for parts in members:
        if any(words.startswith("~~") or words == "Inherited from" and "[" in below for _, _, words, below in parts):
            continue
        for level, anchor, words, below in parts:
            if words in GROUPS or words in DROPPED:
                continue
            if level == 3 and anchor:
                done.append(f"### {words} {{#{name}.{anchor}}}\n{below}")
            elif words == "Constructor":
                done.append(f"### {words}\n{below}")
            elif words == "Returns":
                done.append(f"**Returns** {below.lstrip()}")
            else:
                done.append(f"**{words}**\n{below}")

    def link(match: re.Match[str]) -> str:
        path, anchor = match[1], match[2]
        if "://" in path:
            return match[0]
        target = posixpath.basename(path).removesuffix(".md") or name
        place = "" if where[target] == page else f"{where[target]}.md"
        return f"]({place}#{target}{f'.{anchor}' if anchor else ''})"

    text = re.sub(r'<a id="type-[^"]+"></a> ', "", "".join(done))
    # The generator takes these for a backslash and a bracket.
    return outside_code(lambda part: LINK.sub(link, part.replace("\\<", "&lt;").replace("\\>", "&gt;")), text)


def stage(tools: Path, out: Path, pages: Path) -> list[str]:
    """Writes the pages. Returns them."""
    typedoc(tools, out)
    files = {path.stem: path for path in sorted(out.glob("*/*/*.md"))}
    assert len(files) == len(list(out.glob("*/*/*.md"))), "two exports with one name"
    where: dict[str, str] = {}
    listed: dict[str, list[str]] = {}
    for page, (_, patterns) in PAGES.items():
        for pattern in patterns:
            found = [name for name in files if name not in where and matches(pattern, name)]
            assert found or "*" in pattern, f"{pattern}: no export of Node"
            where.update(dict.fromkeys(found, page))
            listed.setdefault(page, []).extend(found)
    rows = []
    for page in ORDER:
        title = PAGES[page][0]
        parts = [member(files[name].read_text(), name, where, page) for name in listed[page]]
        write(pages / f"{page}.md", f"# {title} in Node.js\n\n" + "\n".join(parts))
        rows.append(f"| [{title}]({page}.md) | {', '.join(f'[`{name}`]({page}.md#{name})' for name in listed[page])} |")
    head = "# Node.js\n\nAll that `locktender` exports. Names that end in `Ms` are milliseconds.\n\n| page | names |\n| --- | --- |\n"
    write(pages / "index.md", head + "\n".join(rows) + "\n")
    return [*ORDER, "index"]
