"""The programs behind the sides: each runs in a process of its own and prints `name=value` fields."""

import json
import math
import subprocess

from fleets import ROOT, urls


def build():
    """Builds our Rust sides and rslock's; gives both programs."""
    ours = built(["-p", "locktender", "--bench", "sides"], "sides")
    manifest = ["--manifest-path", "tests/bench/rslock/Cargo.toml", "--target-dir", "target/bench"]
    return ours, built(manifest, "locktender-bench-rslock")


def built(what, name):
    command = ["cargo", "build", "--release", "--locked", "--message-format=json", *what]
    output = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    for line in output.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == name:
            return message["executable"]
    raise SystemExit(f"cargo built no {name}")


class Sides:
    """Runs sides by name."""

    def __init__(self):
        self.ours, self.rslock = build()

    def command(self, side, where, seconds):
        match side:
            case "rslock":
                return [self.rslock, where, str(seconds), "1"]
            case "redlock":
                return ["node", "tests/bench/redlock.mjs", where, str(seconds), "1"]
        return [self.ours, side, where, str(seconds)]

    def run(self, side, servers, seconds):
        """The fields a side printed. One that doesn't come back in time, or fails, has infinite times."""
        command = self.command(side, urls(servers), seconds)
        try:
            done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=60 + seconds)
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
            return Missing()
        return {name: float(value) for name, value in (field.split("=") for field in done.stdout.split())}

    def trust(self, where):
        subprocess.run([self.ours, "trust", where, "0"], cwd=ROOT, check=True)


class Missing(dict):
    def __missing__(self, field):
        return 0.0 if field.endswith("per_second") else math.inf
