"""A rehearsal: the source as a release takes it, the tools of the release workflow, and commands that have a limit."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from tethered import Server, binary  # noqa: E402

CACHE = ROOT / ".venv/release"
WORKFLOW = (ROOT / ".github/workflows/release.yml").read_text()

# In seconds: a build of all crates with all optimisations, an installation, and anything that has no reason to take long.
BUILD, INSTALL, SHORT = 1_500, 300, 60


def pins():
    """The tools of the workflow, as pip names them."""
    found = re.findall(r"^  (?:ZIG|ZIGBUILD|MATURIN): (\S+)$", WORKFLOW, re.MULTILINE)
    return [*found, re.search(r"pipx run (build==\S+)", WORKFLOW)[1]]


def published():
    """The crates in the order in which the workflow publishes them."""
    return re.findall(r"cargo publish --locked -p ([\w-]+)", WORKFLOW)


class Rehearsal:
    """Folders: of the source, of what is built, and of each environment that was empty."""

    def __init__(self, out, built):
        self.out, self.built = out, built
        self.source, self.tools = CACHE / "source", CACHE / "tools"
        self.target = ROOT / "target/rehearsal"
        self.folder = Path(tempfile.mkdtemp(prefix="locktender-release-"))
        # Neither the settings of this machine's user nor those of the tests.
        unwanted = ("LOCKTENDER_", "CARGO_BUILD_", "CARGO_TARGET_", "PIP_", "PYTHON", "npm_", "NPM_", "NODE_", "NAPI_")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
        version = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, timeout=SHORT, check=True).stdout
        self.triple = re.search(r"^host: (.+)$", version, re.MULTILINE)[1]
        self.zig = self.triple.endswith("-linux-gnu")
        self.server = None
        # The packages of this run.
        self.taken = []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.server:
            self.server.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *command, limit=SHORT, cwd=None, code=0, clean=None, **variables):
        """What a command writes that ends within this time and with this code. `clean`: the only variables that it gets."""
        words = [str(word) for word in command]
        environment = (self.environment if clean is None else clean) | {name: str(value) for name, value in variables.items()}
        both = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        with subprocess.Popen(words, cwd=cwd or self.source, env=environment, text=True, errors="replace", start_new_session=True, **both) as process:
            try:
                written, _ = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                print(process.communicate()[0][-4_000:], flush=True)
                raise RuntimeError(f"{' '.join(words)} does not end within {limit} s") from None
        if process.returncode != code:
            print(written[-4_000:], flush=True)
            raise RuntimeError(f"{' '.join(words)} ended with {process.returncode}, not {code}")
        return written

    def step(self, what, *command, **options):
        """A command that takes a while."""
        began = time.monotonic()
        written = self.run(*command, **options)
        print(f"   {what}: {time.monotonic() - began:.0f} s", flush=True)
        return written

    def build(self, what, *command, **options):
        """A build by the tools of the workflow, into a folder of its own."""
        path = f"{self.tools / 'bin'}{os.pathsep}{self.environment['PATH']}"
        return self.step(what, *command, limit=BUILD, PATH=path, CARGO_TARGET_DIR=self.target, **options)

    def prepare(self):
        """The source is what is committed: nothing else gets into a release."""
        shutil.rmtree(self.source, ignore_errors=True)
        CACHE.mkdir(parents=True, exist_ok=True)
        self.run("git", "clone", "--quiet", ROOT, self.source, cwd=ROOT)
        if changed := self.run("git", "status", "--porcelain", cwd=ROOT).splitlines():
            print(f"   {len(changed)} files are not committed as they are: the packages don't have these changes", flush=True)
        (self.source / "node_modules").symlink_to(self.built / "node_modules")
        key, stamp = f"{' '.join(pins())} {sys.version}", CACHE / "tools.stamp"
        if not stamp.is_file() or stamp.read_text() != key:
            self.run(sys.executable, "-m", "venv", "--clear", self.tools, cwd=CACHE)
            self.step("installs the tools", *self.pip(self.tools), "install", "--quiet", *pins(), limit=INSTALL)
            stamp.write_text(key)

    @staticmethod
    def pip(environment):
        return [environment / "bin/python", "-m", "pip", "--disable-pip-version-check"]

    def empty(self, name):
        """A new empty folder."""
        place = self.folder / name
        place.mkdir()
        return place

    def bare(self, *folders):
        """The variables of somebody who has nothing but these folders and the programs of the system."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        return {"HOME": str(home), "PATH": os.pathsep.join([*map(str, folders), "/usr/bin", "/bin"]), "LANG": "C.UTF-8"}

    def urls(self):
        """The memory of a process, and a real server."""
        if self.server is None:
            self.server = Server(binary(self.built), self.folder)
        return "memory://demo", f"redis://127.0.0.1:{self.server.port}"

    def plays(self, *command, cwd, clean):
        """Runs the first example of the README in memory and on a real server."""
        for url in self.urls():
            written = self.run(*command, cwd=cwd, clean=clean, LOCKTENDER_URL=url)
            if not re.fullmatch(r"writing with fence [1-9]\d*\n", written):
                raise RuntimeError(f"the README's example writes {written!r} on {url.partition(':')[0]}")

    def locks(self, program, clean):
        """The command works, too."""
        memory, server = self.urls()
        assert self.run(*program, "--version", clean=clean) == f"locktender {self.version()}\n"
        for url in (memory, server):
            assert self.run(*program, "run", "deploy", "--", "echo", "done", clean=clean, LOCKTENDER_URL=url) == "done\n"

    def version(self):
        return json.loads((self.source / "package.json").read_text())["version"]


def example(language):
    """The first example of the README in a language."""
    return re.search(rf"^```{language}\b[^\n]*\n(.+?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)[1]
