"""f39: the packages as users get them, installed where there is no compiler, lock there. The long tests play the contract there, too.

They are made of what `tests/run` has built anyway, so the Rust in them isn't optimised. The long tests build the wheel as pip does.
"""

import json
import os
import re
import subprocess
import sysconfig
import zipfile
from pathlib import Path

import glibc
import pytest
from clean import Clean
from support.checkout import ROOT

NATIVE = ROOT / "bindings-node/native"
# Nothing that isn't on every Linux of this kind.
LIBRARIES = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libpthread.so.0", "libdl.so.2", "librt.so.1"}


def build(*command: object, cwd: Path = ROOT) -> str:
    process = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, timeout=600)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def libraries(binary: bytes) -> set[str]:
    return {found.decode() for found in re.findall(rb"(?<=\0)lib[\w+-]+\.so[.\d]*(?=\0)", binary)}


def version() -> str:
    found = re.search(r'^\[workspace.package\]\nversion = "([^"]+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert found
    return found[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    python = ROOT / ".venv/bin/python"
    if "LOCKTENDER_LONG" in os.environ:
        # The build backend looks for maturin on PATH.
        path = f"PATH={python.parent}{os.pathsep}{os.environ['PATH']}"
        pip = ("env", path, python, "-m", "pip", "--disable-pip-version-check")
        build(*pip, "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", out, ROOT)
    else:
        features = "extension-module,workspace"
        build(python, "-m", "maturin", "build", "--locked", "--offline", "--out", out, "--features", features)
    (made,) = out.glob("*.whl")
    return made


def test_the_wheel_is_for_every_python_and_links_what_every_linux_has(wheel: Path) -> None:
    assert re.fullmatch(rf"locktender-{re.escape(version())}-cp310-abi3-\w+\.whl", wheel.name), wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert {"locktender/py.typed", "locktender/_native.pyi", "locktender/__init__.py"} <= set(names)
        assert any("LICENSE" in name for name in names)
        assert not any(name.startswith("locktender.libs") for name in names), "a library had to be taken along"
        (program,) = [name for name in names if name.endswith(".data/scripts/locktender")]
        if "linux" in wheel.name:
            assert libraries(archive.read(program)) <= LIBRARIES
        (native,) = [name for name in names if name.endswith((".so", ".pyd"))]
        if native.endswith("abi3.so") and "linux" in wheel.name:
            assert libraries(archive.read(native)) <= LIBRARIES


@pytest.fixture(scope="module")
def installed_wheel(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Clean, Path]:
    """A system without a compiler, and its Python that has the wheel."""
    clean = Clean(tmp_path_factory.mktemp("python") / "clean")
    build(ROOT / ".venv/bin/python", "-m", "venv", "--without-pip", clean.place / "python")
    python = clean.place / "python/bin/python"
    pip = (ROOT / ".venv/bin/python", "-m", "pip", "--disable-pip-version-check", "--python", python)
    build(*pip, "install", "--quiet", "--no-index", "--no-deps", wheel)
    return clean, python


def test_the_wheel_locks_without_a_compiler(installed_wheel: tuple[Clean, Path]) -> None:
    clean, python = installed_wheel
    program = "import locktender as l; print(l.__file__); print(l.Client('memory://a').lock('a').acquire().release())"
    place, released = clean.run(python, "-c", program).splitlines()
    assert place.startswith(str(clean.place / "python")), place
    assert clean.run(python.with_name("locktender"), "--version") == f"locktender {version()}\n"
    assert "outcome='released'" in released


@pytest.mark.long
def test_the_wheel_passes_the_contract_without_a_compiler(installed_wheel: tuple[Clean, Path]) -> None:
    clean, python = installed_wheel
    # The tests' own tools; locktender isn't among them, for it is there by a .pth file, which only a site directory has.
    tools = {"PYTHONPATH": sysconfig.get_path("purelib"), "PYTHONDONTWRITEBYTECODE": "1"}
    (clean.place / "pytest.ini").write_text("[pytest]\npythonpath = tests/python\n")
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/python/test_contract.py")
    assert " passed" in clean.run(python, *words, **tools)


def platform_packages(place: Path) -> Path:
    """A directory with the manifest of each platform's package, as a release makes them."""
    place.mkdir()
    # napi writes nowhere but in the project it is called in.
    (place / "package.json").write_bytes((ROOT / "package.json").read_bytes())
    build("node", ROOT / "node_modules/.bin/napi", "create-npm-dirs", cwd=place)
    return place / "npm"


def pack(place: Path, out: Path) -> Path:
    words = ("npm", "pack", place, "--ignore-scripts", "--json", "--pack-destination", out)
    return out / json.loads(build(*words))[0]["filename"]


@pytest.fixture(scope="module")
def installed_npm_packages(tmp_path_factory: pytest.TempPathFactory) -> Clean:
    """A system without a compiler that has the npm packages."""
    tmp_path = tmp_path_factory.mktemp("npm")
    (addon,) = NATIVE.glob("locktender.*.node")
    platform = addon.name.split(".")[1]
    own = platform_packages(tmp_path / "project") / platform
    (own / addon.name).write_bytes(addon.read_bytes())
    packages = [pack(ROOT, tmp_path), pack(own, tmp_path)]

    clean = Clean(tmp_path / "clean")
    (clean.place / "package.json").write_text('{ "private": true, "type": "module" }')
    npm = Path(build("npm", "root", "--global").strip()) / "npm/bin/npm-cli.js"
    clean.run("node", npm, "install", "--offline", "--no-audit", "--no-fund", *packages)
    return clean


def test_the_npm_packages_lock_without_a_compiler(installed_npm_packages: Clean) -> None:
    clean = installed_npm_packages
    loaded = clean.run(
        "node",
        "--eval",
        "import('locktender').then(({ Client }) => new Client('memory://a').withLock('a', () => "
        "console.log(JSON.stringify(process.report.getReport().sharedObjects))))",
    )
    (native,) = [Path(file) for file in json.loads(loaded) if file.endswith(".node")]
    (addon,) = NATIVE.glob("locktender.*.node")
    assert native == clean.place / f"node_modules/@locktender/binding-{addon.name.split('.')[1]}" / addon.name


@pytest.mark.long
def test_the_npm_packages_pass_the_contract_without_a_compiler(installed_npm_packages: Clean) -> None:
    clean = installed_npm_packages
    # The tests' own client, which is none of the package's.
    (clean.place / "tests/node_modules").mkdir()
    (clean.place / "tests/node_modules/ioredis").symlink_to(ROOT / "node_modules/ioredis")
    assert re.search(r"^# pass [1-9]", clean.run("node", "--test", "--test-reporter=tap", "tests/node/contract.test.mjs"), re.MULTILINE)


def test_the_addon_links_what_every_linux_has() -> None:
    (addon,) = NATIVE.glob("locktender.*.node")
    if "linux" in addon.name:
        assert libraries(addon.read_bytes()) <= LIBRARIES


def test_one_version_everywhere(tmp_path: Path) -> None:
    manifests = [ROOT / "package.json", *platform_packages(tmp_path / "project").glob("*/package.json")]
    assert len(manifests) == 1 + len(json.loads((ROOT / "package.json").read_text())["napi"]["targets"])
    found = {str(manifest): json.loads(manifest.read_text())["version"] for manifest in manifests}
    lock = json.loads((ROOT / "package-lock.json").read_text())
    found["package-lock.json"] = lock["version"]
    found["package-lock.json, root"] = lock["packages"][""]["version"]
    for package, locked in re.findall(r'^name = "(locktender[\w-]*)"\nversion = "([^"]+)"', (ROOT / "Cargo.lock").read_text(), re.MULTILINE):
        if package in ("locktender", "locktender-cli", "locktender-node", "locktender-python"):
            found[f"Cargo.lock, {package}"] = locked
    assert set(found.values()) == {version()}, found
    loader = (NATIVE / "index.js").read_text()
    assert set(re.findall(r"bindingPackageVersion !== '([^']+)'", loader)) == {version()}


def test_every_npm_package_is_published_for_all(tmp_path: Path) -> None:
    """npm takes a package with a scope for a private one unless it is told otherwise, and refuses it."""
    manifests = [ROOT / "package.json", *platform_packages(tmp_path / "project").glob("*/package.json")]
    assert {json.loads(manifest.read_text())["publishConfig"]["access"] for manifest in manifests} == {"public"}


def test_the_pages_name_the_version() -> None:
    assert f"Version {version()}, " in (ROOT / "README.md").read_text()
    assert re.search(rf"^## \[{re.escape(version())}\]|^This will be {re.escape(version())},", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_the_crate_and_the_source_of_the_wheel_have_what_they_need(tmp_path: Path) -> None:
    listed = set(build("cargo", "package", "-p", "locktender", "--locked", "--offline", "--no-verify", "--allow-dirty", "--list").splitlines())
    texts = {str(text.relative_to(ROOT / "core")) for kind in ("lua", "html", "css", "js") for text in (ROOT / "core/src").rglob(f"*.{kind}")}
    assert {"README.md", "LICENSE-MIT", "LICENSE-APACHE", *texts} <= listed
    assert not any(name.startswith("cli/") for name in listed)
    build(ROOT / ".venv/bin/python", "-m", "maturin", "sdist", "--out", tmp_path)
    (made,) = tmp_path.glob("*.tar.gz")
    build("tar", "-xzf", made, cwd=tmp_path)
    place = tmp_path / made.name.removesuffix(".tar.gz")
    assert {"LICENSE-MIT", "Cargo.lock", "bindings-python", "core"} <= {path.name for path in place.iterdir()}
    assert (place / "bindings-python/README.md").is_file()
    assert (place / "bindings-python/build_backend.py").is_file()
    build("cargo", "metadata", "--offline", "--format-version", "1", cwd=place)


def test_the_release_names_packages_that_there_are_and_publishes_the_program_behind_the_library() -> None:
    metadata = json.loads(build("cargo", "metadata", "--offline", "--no-deps", "--format-version", "1"))
    packages = {package["name"]: {target["name"] for target in package["targets"]} for package in metadata["packages"]}
    for page in (".github/workflows/release.yml", "CONTRIBUTING.md"):
        text = (ROOT / page).read_text()
        assert set(re.findall(r" -p (locktender[\w-]*)", text)) <= packages.keys()
        assert all(program in packages[package] for package, program in re.findall(r"-p ([\w-]+) --bin ([\w-]+)", text))
    published = re.findall(r"cargo publish --locked -p ([\w-]+)", (ROOT / ".github/workflows/release.yml").read_text())
    assert published == ["locktender", "locktender-cli"]


def test_the_newest_glibc_of_a_binary_is_found_and_compared_as_a_version() -> None:
    assert glibc.newest(b"\0GLIBC_2.9\0GLIBC_2.17\0GLIBC_2.2.5\0XGLIBC_9.9\0") == (2, 17)
    assert glibc.newest(b"none") == (0,)
    assert glibc.main("2.17", str(ROOT / "tests/interop/glibc.py")) == 0
    assert glibc.main("2.17") == 1, "nothing was checked"
