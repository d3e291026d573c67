"""Schemes of URLs: a page, a stub or a type that lists them lists all that the code knows."""

import re

import pytest
from support.checkout import ROOT
from support.page import paths

CORE = ROOT / "core/src"
SCHEME = r"\b([a-z]+(?:\+[a-z]+)?)://"


def known():
    """The schemes that the code accepts."""
    schemes = set(re.findall(rf'strip_prefix\("{SCHEME}"', (CORE / "api/sources.rs").read_text()))
    for name in ("url", "sentinel_url", "cluster_url"):
        lists = re.findall(r"^const \w+: \[&str; (\d)\] = \[(.+)\];$", (CORE / f"server/redis/{name}.rs").read_text(), re.M)
        assert len(lists) == 2, f"{name}.rs has two lists: servers without TLS, servers with it"
        for count, quoted in lists:
            names = re.findall(r'"([a-z+]+)"', quoted)
            assert len(names) == int(count)
            schemes.update(names)
    return schemes


def kinds(schemes):
    """What the schemes stand for: `valkeys+cluster` is TLS (`rediss`) and a cluster (`redis+cluster`)."""
    found = set()
    for scheme in schemes:
        base, _, what = scheme.replace("valkey", "redis").partition("+")
        if base == "rediss":
            found.add(base)
        if what or base != "rediss":
            found.add({"": base, "unix": what}.get(what, f"redis+{what}"))
    return found


KNOWN = known()
KINDS = kinds(KNOWN)


def paragraphs(path):
    """The paragraphs of a page; of source code those of its comments."""
    lines = path.read_text().splitlines()
    if path.suffix in (".rs", ".ts"):
        comments = (re.match(r"\s*(?://[/!]|\*) ?(.*)", line) for line in lines)
        lines = [comment[1] if comment else "" for comment in comments]
    return re.split(r"\n\s*\n", "\n".join(lines))


def listed(text):
    return kinds(set(re.findall(SCHEME, text)) & KNOWN)


def named(path):
    return path.relative_to(ROOT).as_posix()


# Where a user looks for what a URL may be. The command has no use for memory://, which excludes nobody in another process. A `RedisServer`
# is one server.
PLACES = {
    "docs/options.md": KINDS,
    "docs/servers.md": KINDS,
    "bindings-python/python/locktender/_native_client.pyi": KINDS,
    "bindings-python/src/client/client.txt": KINDS,
    "bindings-node/lib/client.ts": KINDS,
    "bindings-node/public-types.txt": KINDS,
    "core/src/api/builder.rs": KINDS,
    "core/src/lib.rs": KINDS,
    "core/cli/src/servers.rs": KINDS - {"memory"},
    "core/src/server/redis/routes.rs": KINDS - {"memory", "redis+cluster"},
}


def texts():
    """All pages, stubs, types and comments that users read."""
    yield ROOT / "README.md"
    yield from paths()
    yield from (ROOT / "bindings-python/python").rglob("*.pyi")
    yield from (ROOT / "bindings-python/src").rglob("*.txt")
    yield ROOT / "bindings-node/public-types.txt"
    yield from (ROOT / "bindings-node/lib").rglob("*.ts")
    yield from CORE.rglob("*.rs")


def test_the_schemes_of_the_code_are_found():
    assert {"redis", "rediss", "valkey", "unix", "redis+sentinel", "valkeys+cluster", "memory"} <= KNOWN
    assert kinds({"redis", "valkeys+cluster", "redis+unix", "memory"}) == {"redis", "rediss", "redis+cluster", "unix", "memory"}
    assert listed("redis://a, http://b, `rediss+sentinel://…`") == {"redis", "rediss", "redis+sentinel"}


@pytest.mark.parametrize("place", PLACES)
def test_the_schemes_stand_where_a_user_looks_for_them(place):
    most = max(map(listed, paragraphs(ROOT / place)), key=len)
    assert PLACES[place] - most == set()


def test_a_list_of_schemes_is_whole():
    """Three kinds are a list. A table of services has a URL for each, and is none."""
    lists = [(named(path), text) for path in texts() for text in paragraphs(path) if len(listed(text)) >= 3 and "| service | URL |" not in text]
    partial = [(place, sorted(PLACES.get(place, KINDS) - listed(text))) for place, text in lists]
    assert [(place, missing) for place, missing in partial if missing] == []


def test_the_page_on_servers_has_every_scheme_by_its_name():
    page = (ROOT / "docs/servers.md").read_text()
    spelled = {scheme.replace("valkey", "redis") for scheme in KNOWN}
    assert spelled - set(re.findall(SCHEME, page)) == set()
    assert "With `valkey` in the place of `redis`" in page
