"""Suites: the tests of each language, and a second look at those that failed.

A suite's `test` returns the names of the tests that failed, as its runner reports them. Its `look_again` does the same for these
alone, one at a time.
"""

import json
import os
import shutil
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from checkout import LONG, PYTHON, ROOT, VENV, Failed, heading, run, target_directory

# So many at once are no accident: they get no second look.
ACCIDENTS = 20


def places():
    """Where Python and Node play the contract: in memory, and as a long test on servers, too. Rust plays it everywhere."""
    return {} if "LOCKTENDER_CONTRACT_PLACES" in os.environ else {"LOCKTENDER_CONTRACT_PLACES": "memory"}


def named(passed, names):
    """The names of what failed; a runner that can't say them didn't do its work."""
    if not passed and not names:
        raise Failed("tests failed, and their runner doesn't say which")
    return [] if passed else names


# What of Rust's tests is built by which profile. Those of the core that are beside its code run as fast without any optimisation,
# and optimising them takes the most time of all. The bindings are named there for what they ask of other crates, so that these
# are built once.
PROFILES = {
    "test": ("--workspace", "--test=*"),
    "dev": ("--tests", "-plocktender", "-plocktender-python", "-plocktender-node", "--features=locktender-node/workspace"),
}


class Rust:
    """Each test in a process of its own, but for the core's; .config/nextest.toml says how many at a time, and which ones alone."""

    program = property(lambda self: shutil.which("cargo-nextest", path=f"{VENV / 'bin'}{os.pathsep}{os.environ['PATH']}"))

    def test(self, arguments):
        parts = self.parts(arguments)
        if self.program is None:
            print("   cargo-nextest is missing: cargo test takes more time, and what fails gets no second look", flush=True)
            ignored = ["--", "--include-ignored"] if LONG in os.environ else []
            # They mostly wait for time to pass and for servers: more threads than cores.
            threads = os.environ.get("RUST_TEST_THREADS", "4")
            for profile, part in parts.items():
                words = ["--no-fail-fast", "--locked", "--profile", profile, *part, *arguments, *ignored]
                run("cargo", "test", *words, RUST_TEST_THREADS=threads)
            return []
        ignored = ["--run-ignored", "all"] if LONG in os.environ else []
        if arguments:
            return self.nextest(parts, *arguments, *ignored)
        failed = self.nextest({"test": parts["test"]}, *ignored)
        if not self.pass_in_one_process(parts["dev"]):
            bad = self.nextest({"dev": parts["dev"]}, *ignored)
            if not bad:
                print("   unsteady: what failed in one process passes in processes of their own", flush=True)
            failed += bad
        run("cargo", "test", "--locked", "--workspace", "--doc")
        return failed

    def look_again(self, failed):
        each = (name.partition(" ") for name in failed)
        chosen = " + ".join(f"(binary_id(={binary}) & test(={test}))" for binary, _, test in each)
        return self.nextest(PROFILES, "--run-ignored", "all", "--test-threads", "1", "-E", chosen)

    @staticmethod
    def pass_in_one_process(part):
        """Whether these tests pass in threads of one process, which takes half the time. If not, nextest says which ones fail."""
        ignored = ["--include-ignored"] if LONG in os.environ else []
        words = ["--locked", "--quiet", "--profile", "dev", *part, "--", "--test-threads", "16", *ignored]
        return run("cargo", "test", *words, red=101)

    @staticmethod
    def parts(arguments):
        """What is tested: of each profile its part, or if options say more than names, what they mean."""
        if not any(word.startswith("-") for word in arguments):
            return PROFILES
        says_packages = {"-p", "--package", "--workspace", "--manifest-path"} & set(arguments)
        return {"test": () if says_packages else ("--workspace",)}

    def nextest(self, parts, *words):
        """Runs the chosen tests; the names of those that failed."""
        failed, ran = [], 0
        for profile, part in parts.items():
            report = target_directory() / "nextest/default/junit.xml"
            report.unlink(missing_ok=True)
            # A name that only the other part has is no mistake.
            chosen = ["--locked", "--cargo-profile", profile, *part, *words, "--no-tests", "pass"]
            passed = run(self.program, "nextest", "run", *chosen, red=100)
            suites = ElementTree.parse(report).getroot() if report.is_file() else []
            cases = [(suite.get("name"), case) for suite in suites for case in suite.iter("testcase")]
            ran += len(cases)
            bad = (f"{binary} {case.get('name')}" for binary, case in cases if {"failure", "error"} & {child.tag for child in case})
            failed += named(passed, list(bad))
        if not ran:
            raise Failed("no test of Rust is called so")
        return failed


class Python:
    """pytest; what is chosen runs one by one, and can be debugged."""

    def __init__(self, *directories, chosen_from=(), workers=8):
        self.directories = directories
        self.chosen_from = chosen_from
        # Tests mostly wait: more at a time than there are cores. 0: one at a time, in this process.
        self.workers = workers

    def test(self, arguments):
        if arguments:
            return self.pytest(*self.chosen_from, *arguments)
        return self.pytest("-n", self.workers, "--dist", "worksteal", *self.directories, **places())

    def look_again(self, failed):
        return self.pytest(*failed, **places())

    def pytest(self, *words, **environment):
        with tempfile.TemporaryDirectory() as cache:
            long = ["-m", ""] if LONG in os.environ else []
            passed = run(PYTHON, "-m", "pytest", "-o", f"cache_dir={cache}", *long, *words, red=1, **environment)
            report = Path(cache) / "v/cache/lastfailed"
            return named(passed, list(json.loads(report.read_text())) if report.is_file() else [])


class Node:
    """node:test; the second look is at whole files."""

    def test(self, arguments, output=None):
        if arguments:
            return self.files(arguments, output=output)
        files = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests/node").rglob("*.test.mjs"))
        # They mostly wait: more at a time than there are cores.
        return self.files(files, at_once=6, output=output, **places())

    def look_again(self, failed):
        return self.files(sorted({name.partition(": ")[0] for name in failed}), **places())

    def files(self, files, at_once=1, output=None, **environment):
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as report:
            words = [f"--test-concurrency={at_once}"]
            for reporter, destination in (("spec", "stdout"), ("./tests/node/support/failures.mjs", report.name)):
                words += [f"--test-reporter={reporter}", f"--test-reporter-destination={destination}"]
            passed = run("node", "--test", *words, *files, output=output, red=1, **environment)
            return named(passed, Path(report.name).read_text().splitlines())


class Played:
    """Applications or programs that a script of their own plays. They need more than the other tests, so they are a long suite."""

    def __init__(self, script):
        self.script = script

    def test(self, arguments):
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as report:
            passed = run(sys.executable, self.script, "--report", report.name, *arguments, red=1)
            return named(passed, Path(report.name).read_text().split())

    def look_again(self, failed):
        return self.test(failed)


SUITES = {
    "rust": Rust(),
    "python": Python("tests/python"),
    "node": Node(),
    "interop": Python("tests/interop", chosen_from=["tests/interop"]),
    # The applications of the how-to pages.
    "site": Played("tests/site/run"),
    # Programs for Windows, under wine.
    "windows": Played("tests/windows/run"),
    # Clients of an earlier version and of this one, on the same servers.
    "upgrade": Python("tests/upgrade", chosen_from=["tests/upgrade"], workers=0),
    # The packages of a release: built, installed and used.
    "release": Played("tests/release/run"),
}
# Those that only `tests/run all` runs, if none is chosen.
ONLY_LONG = ("site", "windows", "upgrade", "release")

# Python's and interop's tests at one time.
BOTH = "python, interop"
ALL = {"rust": SUITES["rust"], BOTH: Python("tests/python", "tests/interop"), "node": SUITES["node"]}


def all_suites():
    """What runs if no suite is chosen."""
    return ALL | ({name: SUITES[name] for name in ONLY_LONG} if LONG in os.environ else {})


def tried(work, *arguments):
    """Does some tests; returns the names of those that failed, or None if it didn't come to that, and the seconds it took."""
    began = time.monotonic()
    try:
        failed = work(*arguments)
    except Failed as failure:
        print(f"tests/run: {failure}", file=sys.stderr, flush=True)
        failed = None
    return failed, time.monotonic() - began


def run_all(set_up_bindings):
    """The results of all suites, each also after another failed.

    The bindings are built beside Rust's tests, of which most wait. The tests in Python and in Node mostly wait, too. So they run side by
    side, and Node's output is shown afterwards.
    """
    results = {}
    with ThreadPoolExecutor() as pool, tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        bindings = pool.submit(set_up_bindings)
        for name, suite in all_suites().items():
            if name == BOTH:
                if failure := bindings.exception():
                    print(f"tests/run: {failure}", file=sys.stderr, flush=True)
                    return results | {each: (None, 0.0) for each in all_suites() if each not in results}
                node = pool.submit(tried, ALL["node"].test, (), output)
            heading(f"{name} tests")
            results[name] = node.result() if name == "node" else tried(suite.test, ())
        output.seek(0)
        shutil.copyfileobj(output, sys.stdout)
    return results


def second_look(name, suite, failed):
    """What failed, once more and alone: the names that stay red, and those that passed."""
    if not failed or len(failed) > ACCIDENTS:
        return failed, []
    heading(f"{name}: a second look")
    again, _ = tried(suite.look_again, failed)
    if again is None:
        return failed, []
    return again, [each for each in failed if each not in again]


def passes(name, arguments):
    """Runs some tests of one suite, or all of it; whether they passed."""
    return sum_up({name: SUITES[name]}, {name: tried(SUITES[name].test, arguments)})


def pass_all(set_up_bindings):
    """Runs all suites, and before those that need the bindings what sets them up; whether all passed."""
    return sum_up(all_suites(), run_all(set_up_bindings))


def sum_up(suites, results):
    """Has a second look at what failed, and prints a summary; whether all passed."""
    looked = {each: second_look(each, suites[each], failed) for each, (failed, _) in results.items()}
    heading("summary")
    for each, (red, unsteady) in looked.items():
        print(f"   {each:16} {'passed' if red == [] else 'FAILED'}  {results[each][1]:.1f} s")
        for test in red or []:
            print(f"      red: {test}")
        for test in unsteady:
            print(f"      unsteady: {test}")
            if os.environ.get("GITHUB_ACTIONS") == "true":
                print(f"::warning title=unsteady test::{test} failed, and passed when it ran again alone")
    failed = sum(red != [] for red, _ in looked.values())
    print(f"suites: {len(looked) - failed} passed, {failed} failed", flush=True)
    return failed == 0
