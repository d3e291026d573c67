"""Rust programs that are built with ``panic = "abort"``: where nothing can be caught, nothing panics."""

import os
import subprocess

import pytest
from support.checkout import ROOT
from support.server import RealServer


@pytest.mark.long
def test_runtimes_without_timers_or_io_end_no_program_that_aborts(server: RealServer):
    target = ROOT / "target/abort"
    # A target that is named would put the program into a folder of that name.
    environment = {name: value for name, value in os.environ.items() if name != "CARGO_BUILD_TARGET"}
    options = ("--locked", "--package", "locktender-tests", "--example", "driverless", "--target-dir", target)
    subprocess.run(["cargo", "build", *options, "--config", 'profile.dev.panic="abort"'], cwd=ROOT, env=environment, check=True)
    done = subprocess.run([target / "debug/examples/driverless", server.url], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
