"""Packages: what is in the files of a release, their licences, sizes and checksums."""

import hashlib
import json
import re
import tarfile
import zipfile

LICENCE = "MIT OR Apache-2.0"
TEXTS = {"LICENSE-MIT", "LICENSE-APACHE"}
# What is linked statically, with its licences.
THIRD_PARTIES = "THIRD-PARTY-LICENSES.md"

# What no package has to have: tests, what is built or installed in a checkout, and the settings of editors and services.
UNWANTED = re.compile(r"(^|/)(tests|target|node_modules|\.venv|\.git|\.github|\.config|\.ci|__pycache__|examples)/|\.(pyc|orig|log|tgz|whl|pem)$")
# cargo puts the manifest there as it was.
EXPECTED = re.compile(r"(^|/)Cargo\.toml\.orig$")
# The files that are compiled: for one platform only.
COMPILED = re.compile(r"\.(node|so|dylib|pyd)$|\.data/scripts/locktender(\.exe)?$")
# Where each kind of package names its licence.
NAMED = {
    ".whl": (r"\.dist-info/METADATA$", r"^License-Expression: (.+)$"),
    ".tar.gz": (r"^[^/]+/PKG-INFO$", r"^License-Expression: (.+)$"),
    ".tgz": (r"^package/package\.json$", r'^  "license": "(.+)",$'),
    ".crate": (r"^[^/]+/Cargo\.toml$", r'^license = "(.+)"$'),
}
# What a registry shows of each kind of package.
SHOWN = {".whl": r"\.dist-info/METADATA$", ".tar.gz": r"^[^/]+/PKG-INFO$", ".tgz": r"^package/README\.md$", ".crate": r"^[^/]+/README\.md$"}
# There a link into the repository leads nowhere.
RELATIVE = re.compile(r"\]\((?!https://|#)([^)\s]+)\)")


class Package:
    """One file."""

    def __init__(self, path):
        self.path = path
        self.kind = next(kind for kind in NAMED if path.name.endswith(kind))
        self.data = path.read_bytes()
        if self.kind == ".whl":
            with zipfile.ZipFile(path) as archive:
                self.files = {each.filename: archive.read(each) for each in archive.infolist()}
        else:
            with tarfile.open(path) as archive:
                self.files = {each.name: archive.extractfile(each).read() for each in archive if each.isfile()}
                self.others = [each.name for each in archive if not each.isfile() and not each.isdir()]

    @property
    def checksum(self):
        return hashlib.sha256(self.data).hexdigest()

    @property
    def licence(self):
        where, what = NAMED[self.kind]
        text = next(data.decode() for name, data in self.files.items() if re.search(where, name))
        return re.search(what, text, re.MULTILINE)[1]

    def faults(self):
        """What is wrong with it."""
        names = {name.rpartition("/")[2] for name in self.files}
        compiled = any(COMPILED.search(name) for name in self.files)
        lacking = (TEXTS | ({THIRD_PARTIES} if compiled else set())) - names
        found = [f"it lacks {name}" for name in sorted(lacking)]
        found += [f"its licence is {self.licence}"] * (self.licence != LICENCE)
        found += [f"{name} should not be in it" for name in self.files if UNWANTED.search(name) and not EXPECTED.search(name)]
        found += [f"{name} is neither a file nor a folder" for name in getattr(self, "others", ())]
        shown = [data.decode() for name, data in self.files.items() if re.search(SHOWN[self.kind], name)]
        found += [f"it has {len(shown)} pages for its registry"] * (len(shown) != 1)
        found += [f"its registry shows the link {link}, which leads nowhere there" for text in shown for link in RELATIVE.findall(text)]
        found += [f"{name} is empty" for name, data in self.files.items() if not data and not name.endswith("py.typed")]
        return found


def manifest(package):
    """What npm's package says of itself."""
    return json.loads(package.files["package/package.json"])


def listing(out, taken):
    """Prints what is in a folder and writes the checksums beside it; the faults. What this run didn't take there is of an earlier one."""
    packages = [Package(path) for path in sorted(out.iterdir()) if path.name != "SHA256SUMS"]
    faults = []
    for package in packages:
        name = package.path.name
        print(f"{name}{'' if package.path in taken else ', of an earlier run'}\n   {len(package.data):>9,} bytes, {len(package.files)} files, {package.licence}\n   sha256 {package.checksum}", flush=True)
        faults += [f"{name}: {fault}" for fault in package.faults()]
    (out / "SHA256SUMS").write_text("".join(f"{package.checksum}  {package.path.name}\n" for package in packages))
    return faults
