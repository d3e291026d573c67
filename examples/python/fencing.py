"""A holder that stood still for too long writes, and the resource refuses it. LOCKTENDER_URL=redis://localhost python fencing.py"""

from locktender import lock


class Account:
    """What the lock protects. It remembers the largest fence it has seen, and refuses smaller ones."""

    def __init__(self) -> None:
        self.balance = 0
        self.fence = 0

    def write(self, balance: int, fence: int) -> str:
        if fence < self.fence:
            return f"fence {fence} came after {self.fence}: refused"
        self.balance, self.fence = balance, fence
        return "written"


account = Account()

# Without renewal the lock runs out, as it would for a process that is paused.
slow = lock("account:7", ttl=0.2, renew=False).acquire()
loss = slow.wait_lost()
print(f"the slow holder was lost: {loss and loss.reason}")

quick = lock("account:7").acquire()
print(f"the quick holder writes: {account.write(200, quick.fence)}")
print(f"the slow holder writes: {account.write(100, slow.fence)}")
assert account.balance == 200

print(f"the slow holder's release finds the lock {slow.release().outcome}")
quick.release()
