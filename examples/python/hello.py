"""A lock that is held around some work: `LOCKTENDER_URL=redis://localhost python hello.py`."""

from locktender import AcquireTimeoutError, lock

greeting = lock("example:hello", ttl=10, wait=5)

try:
    with greeting as hold:
        print(f"holding {hold.name!r}, fence {hold.fence}, for at least {hold.remaining():.0f} s; it is renewed while this runs")
        holder = greeting.inspect()
        print(f"everybody sees: {holder.owner if holder else 'nobody'}")
except AcquireTimeoutError as busy:
    raise SystemExit(f"busy: {busy}")

print("given back" if greeting.inspect() is None else "another process was waiting for it")
