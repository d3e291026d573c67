"""A held lock that moves to another process, and is never free in between."""

import os
import subprocess
import sys

from locktender import lock
from locktender import Client

if len(sys.argv) > 1:
    with Client() as client, client.adopt(sys.argv[1], wait=5) as hold:
        print(f"process {os.getpid()} has adopted {hold.name!r}, fence {hold.fence}", flush=True)
    sys.exit()

hold = lock("example:handover", ttl=10, wait=5).acquire()
print(f"process {os.getpid()} holds {hold.name!r}, fence {hold.fence}", flush=True)
subprocess.run([sys.executable, __file__, hold.hand_over()], check=True)
print(f"and here it is no longer held: {hold.is_valid()}")
