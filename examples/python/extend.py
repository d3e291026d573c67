"""A lock without a heartbeat, pushed out from inside the work: it ends soon after the work gets stuck."""

from locktender import LockLostError, lock

work = lock("example:extend", ttl=1, renew=False)

try:
    with work as held:
        for page in range(5):
            held.extend(1)  # a second from now, if less remains
            print(f"page {page}: {held.remaining():.1f} s remain")
        held.extend(by=2)
        print(f"two more for the summary: {held.remaining():.1f} s remain")
        print("now the work gets stuck ...")
        loss = held.wait_lost(10)
        print(f"the lock was lost: {loss.reason if loss else 'not yet'}")
except LockLostError as lost:
    print(f"leaving says so too: {lost}")
