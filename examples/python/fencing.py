"""A resource that refuses the writes of an older holder: the only protection against a late holder."""

from locktender import lock


class Account:
    """A stand-in for a table with a column `fence`: UPDATE ... WHERE fence <= :fence."""

    def __init__(self) -> None:
        self.balance, self.fence = 100, 0

    def withdraw(self, amount: int, fence: int) -> bool:
        if fence < self.fence:
            return False
        self.balance, self.fence = self.balance - amount, fence
        return True


account = Account()
turn = lock("example:fencing", ttl=1, wait=5, renew=False)

late = turn.acquire()
print(f"the first holder has fence {late.fence}, and is stopped for longer than its ttl ...")
late.wait_lost(10)

with turn as hold:
    print(f"the second has fence {hold.fence}; its withdrawal: {account.withdraw(10, hold.fence)}")

print(f"the first continues, without looking; its withdrawal: {account.withdraw(10, late.fence)}")
print(f"balance {account.balance}; the first gives back what it no longer has: {late.release().outcome}")
