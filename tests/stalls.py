"""Stalls: it runs a command and stops all its processes for a moment, again and again, while time continues.

    tests/stalls.py EVERY FOR COMMAND...

About every EVERY seconds everything stops for about FOR seconds, as the machines do that others share. A test that fails here and
nowhere else counts on being faster than something. What the command stopped itself, it has to continue itself.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict

STOPPED, ENDED = "T", "Z"


def running(root: int) -> list[int]:
    """The process and its descendants, each before its own, as far as they run."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    states = {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            with open(f"/proc/{pid}/stat") as status:
                states[pid], parent, *_ = status.read().rpartition(") ")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
        children[int(parent)].append(pid)
    found = [root]
    for pid in found:
        found += children[pid]
    return [pid for pid in found if states.get(pid, ENDED) not in (STOPPED, ENDED)]


def tell(pid: int, sign: signal.Signals) -> None:
    try:
        os.kill(pid, sign)
    except ProcessLookupError:
        pass


def stall(root: int, seconds: float) -> None:
    stopped: list[int] = []
    # Until none is left: those that are stopped last may have started others meanwhile.
    while found := [pid for pid in running(root) if pid not in stopped]:
        for pid in found:
            tell(pid, signal.SIGSTOP)
        stopped += found
    time.sleep(seconds)
    for pid in reversed(stopped):
        tell(pid, signal.SIGCONT)


def main(every: str, seconds: str, *command: str) -> int:
    process = subprocess.Popen(command)
    stalls = 0
    while process.poll() is None:
        time.sleep(float(every) * random.uniform(0.3, 1.7))
        stall(process.pid, float(seconds) * random.uniform(0.5, 1.5))
        stalls += 1
    print(f"stalled {stalls} times")
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
