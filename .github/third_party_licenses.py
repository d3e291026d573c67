"""Writes THIRD-PARTY-LICENSES.md: what the wheel, the addon and the command link statically, with the licence texts.

    python3 .github/third_party_licenses.py                      for all targets of package.json
    python3 .github/third_party_licenses.py --target TRIPLE      for one of them
    python3 .github/third_party_licenses.py --out FILE           another file

The release workflow calls it, and puts the file into the packages. `cargo tree` says which crates are linked, `cargo metadata` where their
sources lie: the licence files are copied from there. A crate that has none is an error, unless LACKING knows the notice of its repository.
"""

import argparse
import html
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
# The library of the wheel, the addon, and the command, which is in both.
SHIPPED = ["locktender-python", "locktender-node", "locktender-cli"]
LICENCE = re.compile(r"(un)?licen[cs]e|copying|copyright|notice", re.IGNORECASE)

MIT = """
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the
"Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to
the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY
CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE
SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""
# By repository: the notices there, of crates whose packages have no licence file.
LACKING = {"https://github.com/napi-rs/napi-rs": f"Copyright (c) 2020-present LongYinan\nCopyright (c) 2018 GitHub\n{MIT}"}
# Of the standard library, the crates of systems for which there is no package.
ELSEWHERE = ("fortanix-sgx-abi", "hermit-abi", "moto-rt", "r-efi", "vex-sdk", "wasi", "wit-bindgen")


class Part(NamedTuple):
    """Something that is linked: its name with the version, its licence as SPDX writes it, and the texts."""

    name: str
    licence: str
    texts: list[str]


def run(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def linked(targets: list[str]) -> set[str]:
    """The crates behind what is shipped, as `name vX.Y.Z`. What only builds it, such as a macro, is not among them."""
    words = ["--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"]
    words += [word for package in SHIPPED for word in ("--package", package)]
    words += [word for target in targets for word in ("--target", target)]
    lines = run("cargo", "tree", "--locked", *words).splitlines()
    # The workspace's own have a path behind the version.
    return {line.removesuffix(" (*)") for line in lines if line and "(/" not in line}


def crates(targets: list[str]) -> list[Part]:
    packages = json.loads(run("cargo", "metadata", "--locked", "--format-version", "1"))["packages"]
    by_name = {f"{package['name']} v{package['version']}": package for package in packages}
    return [crate(by_name[name]) for name in sorted(linked(targets))]


def crate(package: dict[str, str]) -> Part:
    folder = Path(package["manifest_path"]).parent
    # Some crates have a folder of them.
    found = [path for path in sorted(folder.iterdir()) if LICENCE.match(path.name)]
    files = [file for path in found for file in ([path] if path.is_file() else sorted(path.iterdir()))]
    texts = [file.read_text(errors="replace") for file in files if file.suffix not in (".rs", ".toml")]
    if not texts and package["repository"] in LACKING and package["license"] == "MIT":
        texts = [LACKING[package["repository"]]]
    if not texts:
        sys.exit(f"{package['name']} {package['version']} has no licence file in {folder}")
    return Part(f"{package['name']} {package['version']}", package["license"], texts)


def standard_library() -> list[Part]:
    """Rust's own page, a file of each toolchain, names the crates that the standard library links."""
    page = Path(run("rustc", "--print", "sysroot").strip()) / "share/doc/rust/COPYRIGHT-library.html"
    parts = [Part("The standard library of Rust", "MIT OR Apache-2.0", [f"Copyright (c) The Rust Project Developers\n{MIT}"])]
    for section in page.read_text().split("<h3>📦 ")[1:]:
        name, version = re.match(r"(.+?)-(\d[^<]*)</h3>", section).groups()
        licence = re.search(r"License:</b> ([^<]+)<", section)[1]
        if name.startswith(ELSEWHERE):
            continue
        texts = [html.unescape(text) for text in re.findall(r"<pre>(.*?)</pre>", section, re.DOTALL)]
        if not texts:
            sys.exit(f"{page} has no licence of {name}")
        parts.append(Part(f"{name} {version}, of the standard library", licence, texts))
    if len(parts) == 1:
        sys.exit(f"{page} names no crates: its form has changed")
    return parts


def beside(targets: list[str]) -> list[Part]:
    musl = Part("musl, in the packages for musl", "MIT", [f"Copyright © 2005-2020 Rich Felker, et al.\n{MIT}"])
    return standard_library() + ([musl] if any(target.endswith("-musl") for target in targets) else [])


def page(parts: list[Part]) -> str:
    """A table of what is linked, and each text once, with the names that it is for."""
    texts: dict[str, tuple[str, list[str]]] = {}
    for part in parts:
        for text in part.texts:
            texts.setdefault(" ".join(text.split()), (text, []))[1].append(part.name)
    lines = ["# Third-party licences", "", "The compiled parts of locktender contain these works.", "", "| work | licence |", "| --- | --- |"]
    lines += [f"| {name} | {licence} |" for name, licence, _ in parts]
    for text, names in sorted(texts.values(), key=lambda each: -len(each[1])):
        lines += ["", "---", "", f"For {'; '.join(dict.fromkeys(names))}:", "", "~~~text", text.strip("\n").rstrip(), "~~~"]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", action="append", help="a target triple; may be repeated")
    parser.add_argument("--out", type=Path, default=ROOT / "THIRD-PARTY-LICENSES.md")
    options = parser.parse_args()
    targets = options.target or json.loads((ROOT / "package.json").read_text())["napi"]["targets"]
    parts = crates(targets) + beside(targets)
    options.out.write_text(page(parts))
    print(f"{options.out}: {len(parts)} works")


if __name__ == "__main__":
    main()
