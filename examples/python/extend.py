"""A lock that the work itself extends, without renewal in the background: it expires soon after the work hangs."""

from locktender import LockLostError, lock

work = lock("example:extend", ttl=1, renew=False)

try:
    with work as hold:
        for page in range(5):
            hold.extend(1)  # until a second from now, if less remains
            print(f"page {page}: {hold.remaining():.1f} s remain")
        hold.extend(by=2)
        print(f"two more for the summary: {hold.remaining():.1f} s remain")
        print("now the work gets stuck ...")
        loss = hold.wait_lost(10)
        print(f"the lock was lost: {loss.reason if loss else 'not yet'}")
except LockLostError as lost:
    print(f"leaving says so too: {lost}")
