"""Lock files of packages that `tests/run all` alone builds."""

import re

from support.checkout import ROOT


def test_the_lock_file_of_the_axum_example_has_what_the_core_needs():
    manifest = (ROOT / "core/Cargo.toml").read_text()
    lines = manifest.partition("[dependencies]\n")[2].partition("\n[")[0].splitlines()
    needed = {line.split()[0] for line in lines if line.strip() and "optional = true" not in line}
    needed |= set(re.findall(r'"dep:([\w-]+)"', re.search(r"^tls = \[(.*)\]$", manifest, re.MULTILINE)[1]))  # on by default
    lock = (ROOT / "examples/rust/axum_orders/Cargo.lock").read_text()
    locked = re.search(r'name = "locktender"\n(?:.+\n)*?dependencies = \[\n((?: .+\n)+)\]', lock)
    assert locked and needed == set(re.findall(r'"([\w-]+)', locked[1]))
