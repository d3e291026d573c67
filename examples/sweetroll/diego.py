"""Diego fights for the sweetroll in Python: diego.py URL FILE TTL END"""

import json
import random
import sys
import time
from pathlib import Path

from locktender import AcquireTimeoutError, Client, Hold, LockLostError

NAME = "Diego"


def tell(event: str, **details: object) -> None:
    """Sends a notice to the stage, which shows it."""
    print(json.dumps({"event": event, **details}), flush=True)


def write(shared: Path, held: Hold, event: str, since: float, checked: float, until: float) -> None:
    """Appends a line to the shared file. Its readers refuse a line whose fence is smaller than an earlier one."""
    line = {"fence": held.fence, "who": NAME, "event": event, "since": since, "checked": checked, "until": until, "at": time.time()}
    with shared.open("a") as file:
        file.write(json.dumps(line) + "\n")


def eat(held: Hold, shared: Path, ttl: float, since: float) -> None:
    """The work that must happen while the lock is held."""
    for bite in range(random.randint(2, 6)):
        if bite == 2:
            held.extend(by=ttl / 2)
            tell("extends")
        checked = time.time()
        until = checked + held.remaining()
        held.check()
        tell("bites", checked=checked)
        # The work. If this process is paused here for too long, the check above is outdated. Then only the fence in the
        # line below prevents damage.
        time.sleep(0.1)
        write(shared, held, "bites", since, checked, until)
    now = time.time()
    write(shared, held, "leaves", since, now, now + held.remaining())


def main() -> None:
    urls, shared, ttl, end = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
    tell("enters")
    # Two ttls: more than the remaining time of any hold here. A server that was killed does not vote for so long.
    with Client(urls, app=NAME, ttl=ttl, max_ttl=2 * ttl) as client:
        while (left := end - time.time()) > 0:
            tell("waits")
            began = time.monotonic()
            try:
                with client.lock("sweetroll", ttl=ttl, wait=left) as held:
                    tell("takes", fence=held.fence, waited=round(time.monotonic() - began, 3))
                    eat(held, shared, ttl, time.time())
                tell("leaves")
            except AcquireTimeoutError:
                break
            except LockLostError as lost:
                tell("loses", why=str(lost))
            time.sleep(random.uniform(0, 0.15))
    tell("leaves")


main()
