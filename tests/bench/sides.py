"""Sides: the programs of a comparison. Each runs in its own process and prints `name=value` fields."""

import json
import math
import os
import subprocess
import sys
import time

from fleets import ROOT, urls

NODE = {
    "node-locktender",
    "node-with-lock",
    "node-once",
    "node-semaphore",
    "redlock",
    "redlock-using",
    "redlock-universal",
    "ioredis",
    "redis-semaphore",
}


def build(groups):
    """Builds what the sides of these groups run, all of it optimised; gives our Rust program and rslock's."""
    if {"python", "waiting"} & set(groups):
        step(sys.executable, "-m", "pip", "install", "--quiet", "-r", "tests/bench/requirements.txt")
        step(sys.executable, "-m", "maturin", "develop", "--release", "--locked", VIRTUAL_ENV=sys.prefix)
    if {"node", "waiting"} & set(groups):
        step("npm", "run", "--silent", "build")
    ours = built(["-p", "locktender", "--bench", "sides"], "sides")
    manifest = ["--manifest-path", "tests/bench/rslock/Cargo.toml", "--target-dir", "target/bench"]
    return ours, built(manifest, "locktender-bench-rslock")


def step(*command, **environment):
    subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, stdout=sys.stderr, check=True)


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

    def __init__(self, groups):
        self.ours, self.rslock = build(groups)

    def command(self, side, where, seconds):
        name, _, callers = side.rpartition("-")
        what = [where, str(seconds), callers, *(["new"] if name.endswith("-new") else [])]
        name = name.removesuffix("-new")
        match name:
            case "rslock":
                return [self.rslock, *what]
            case _ if name in NODE:
                return ["node", "tests/bench/node_sides.mjs", name.removeprefix("node-"), *what]
            case "node-bare":
                return ["node", "-e", ""]
            case "py-sync" | "redis-py" | "py-asyncio" | "redis-asyncio" | "py-once":
                return [sys.executable, "tests/bench/python_sides.py", name.removeprefix("py-"), *what]
            case "py-bare":
                return [sys.executable, "tests/bench/python_sides.py", "bare", where, str(seconds), callers]
        return [self.ours, side, where, str(seconds)]

    def run(self, side, servers, seconds):
        """The fields a side printed, and what its process and the servers took. One that fails or hangs has infinite times."""
        before = sum(server.cpu_us() for server in servers)
        began = time.monotonic()
        process = subprocess.Popen(self.command(side, urls(servers), seconds), cwd=ROOT, stdout=subprocess.PIPE, text=True)
        try:
            output, _ = process.communicate(timeout=60 + seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        if process.returncode != 0:
            return Missing()
        fields = {name: float(value) for name, value in (field.split("=") for field in output.split())}
        took = (time.monotonic() - began) * 1e3
        # The servers work for the pairs of the warm-up, too.
        if fields.get("all_pairs"):
            fields["server_cpu_us_per_pair"] = (sum(server.cpu_us() for server in servers) - before) / fields["all_pairs"]
        return {"process_ms": took, **fields}

    def trust(self, where):
        subprocess.run([self.ours, "trust", where, "0"], cwd=ROOT, check=True)


class Missing(dict):
    def __missing__(self, field):
        return 0.0 if field.endswith("per_second") else math.inf
