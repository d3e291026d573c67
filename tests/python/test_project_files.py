"""The files that a project is judged by: what they say of versions, licences and workflows is what the manifests say."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.checkout import ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FORMS = [ROOT / f".github/ISSUE_TEMPLATE/{name}.yml" for name in ("bug", "feature")]
# The branch that PyPA's README names.
UNPINNED = {"pypa/gh-action-pypi-publish@release/v1"}

VERSIONS = (ROOT / "docs/versioning.md").read_text()
MANIFEST: dict[str, Any] = json.loads((ROOT / "package.json").read_text())
WORKSPACE = (ROOT / "Cargo.toml").read_text()
PYPROJECT = (ROOT / "pyproject.toml").read_text()
SOURCE = (".rs", ".py", ".pyi", ".lua", ".ts", ".mts", ".mjs", ".js", ".css", ".html", ".c")


def found(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    assert match, pattern
    return match[1]


def versions(what: str) -> list[str]:
    """The tested versions in a row of the table."""
    return re.findall(r"\d[\d.]*", found(rf"^\| {re.escape(what)} \| ([^|]+) \|", VERSIONS))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_an_action_is_pinned_by_its_commit_with_the_version_behind_it(workflow: Path):
    for line in re.findall(r"uses: (.+)", workflow.read_text()):
        assert line in UNPINNED or re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


def test_an_action_has_one_version_in_all_workflows():
    pins = {tuple(line.split("@", 1)) for workflow in WORKFLOWS for line in re.findall(r"uses: (.+)", workflow.read_text())}
    assert len(pins) == len({action for action, _ in pins})


def test_the_table_of_versions_names_what_the_tests_run_with():
    rows = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]["test"]["strategy"]["matrix"]["include"]
    required = [row for row in rows if not row.get("optional")]
    assert set(versions("Python (CPython)")) == {row["python"] for row in required}
    assert set(versions("Node")) == {str(row["node"]) for row in required}
    for runtime in ("Bun", "Deno"):
        assert versions(runtime) == [MANIFEST["devDependencies"][runtime.lower()].rpartition(".")[0]]


def test_the_table_of_versions_names_the_oldest_that_the_manifests_allow():
    rows = {"Node": MANIFEST["engines"]["node"], "Python (CPython)": found(r'^requires-python = "(.+)"', PYPROJECT)}
    rows["Rust"] = found(r'^rust-version = "(.+)"', WORKSPACE)
    for what, oldest in rows.items():
        assert f"before {oldest.removeprefix('>=')}" in found(rf"^\| {re.escape(what)} (\|.*)", VERSIONS), what
    assert f"{rows['Rust']} compiles" in VERSIONS


def test_the_registries_get_keywords_and_classifiers_that_they_take():
    keywords = json.loads(found(r"^keywords = (\[.+\])", WORKSPACE))
    assert len(keywords) <= 5 and all(re.fullmatch(r"[a-z][a-z0-9_+-]{0,19}", word) for word in keywords)
    assert set(keywords) <= set(MANIFEST["keywords"])
    words = {"distributed-lock", "fencing-token", "leader-election", "valkey", "cron", "redis-cluster", "sentinel"}
    assert words <= set(MANIFEST["keywords"]) and all(f'"{word}"' in PYPROJECT for word in words)
    classifiers = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', PYPROJECT)
    assert set(versions("Python (CPython)")) <= set(classifiers)


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_a_form_asks_each_question_once(form: Path):
    questions = [part for part in yaml.safe_load(form.read_text())["body"] if part["type"] != "markdown"]
    assert all(part["attributes"]["label"] for part in questions)
    assert len({part["id"] for part in questions}) == len(questions)


def test_the_form_of_a_bug_asks_for_what_every_report_needs():
    text = FORMS[0].read_text()
    for needed in ("locktender doctor --json", "locktender --version", "`overlapped`", "`lost`"):
        assert needed in text


def test_dependabot_looks_where_there_is_something_to_update():
    files = {"cargo": ("Cargo.toml",), "npm": ("package.json",), "pip": ("pyproject.toml", "requirements.txt"), "github-actions": (".github/workflows",)}
    updates = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text())["updates"]
    assert {update["package-ecosystem"] for update in updates} == files.keys()
    for update in updates:
        for place in update.get("directories") or [update["directory"]]:
            names = files[update["package-ecosystem"]]
            assert any((ROOT / place.lstrip("/") / name).exists() for name in names), place


def cargo(*words: str) -> str:
    return subprocess.run(["cargo", *words, "--locked", "--offline"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def test_every_crate_has_a_licence_that_deny_toml_allows():
    allowed = set(re.findall(r'^    "(.+)",$', found(r"(?s)^allow = \[\n(.+?)^\]", (ROOT / "deny.toml").read_text()), re.MULTILINE))
    used = set()
    for package in json.loads(cargo("metadata", "--format-version", "1"))["packages"]:
        names = re.findall(r"[\w.+-]+(?: WITH [\w.-]+)?", re.sub(r"\b(OR|AND)\b", ",", package["license"]))
        accepted = re.sub(r"[\w.+-]+(?: WITH [\w.-]+)?", lambda word: word[0].lower() if word[0] in ("OR", "AND") else str(word[0] in allowed), package["license"])
        assert eval(accepted), (package["name"], package["license"])
        used |= set(names) & allowed
    assert used == allowed, "a licence that no crate needs"


def test_the_targets_of_deny_toml_are_those_of_the_packages():
    targets = re.findall(r'^    "(.+)",$', found(r"(?s)^targets = \[\n(.+?)^\]", (ROOT / "deny.toml").read_text()), re.MULTILINE)
    assert targets == MANIFEST["napi"]["targets"]


def test_the_licences_of_what_is_linked_are_written_for_one_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CARGO_NET_OFFLINE", "true")
    out = tmp_path / "licences.md"
    target = found(r"^host: (.+)$", subprocess.run(["rustc", "-vV"], check=True, stdout=subprocess.PIPE, text=True).stdout)
    subprocess.run([sys.executable, ROOT / ".github/third_party_licenses.py", "--target", target, "--out", out], check=True)
    text = out.read_text()
    works = re.findall(r"^\| (.+?) [\d.]+ \| .+ \|$", text, re.MULTILINE)
    # Of the core, of each binding, of the command; and no macro, nothing of a test, nothing of ours.
    assert {"ring", "rustls", "redis", "pyo3", "napi", "clap", "hyper"} <= set(works)
    assert not {"pyo3-macros", "syn", "tracing-subscriber", "locktender"} & set(works)
    assert "Copyright (c) 2020-present LongYinan" in text and "The standard library of Rust" in text
    named = {name for names in re.findall(r"^For (.+):$", text, re.MULTILINE) for name in names.split("; ")}
    assert set(re.findall(r"^\| (.+?) \| .+ \|$", text, re.MULTILINE)) - {"work", "---"} <= named


def test_the_wheel_takes_the_licences_of_third_parties_along():
    (pattern,) = json.loads(found(r"^license-files = (\[.+?\])", PYPROJECT))
    names = ["LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY-LICENSES.md"]
    assert all(Path(name).match(pattern) for name in names)
    assert "/THIRD-PARTY-LICENSES.md" in (ROOT / ".gitignore").read_text().splitlines()


def test_no_file_of_source_has_more_than_400_lines():
    """What is longer has a second subject."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    files = [ROOT / name for name in listed if name.endswith(SOURCE)]
    lengths = {path: path.read_text().count("\n") for path in files if path.exists()}
    assert len(lengths) > 1_000
    assert {path: length for path, length in lengths.items() if length > 400} == {}
