"""Extends a lock from inside the work instead of having it renewed. LOCKTENDER_URL=redis://localhost python extend.py"""

from locktender import lock

# A short ttl, pushed out whenever the work has got somewhere: work that hangs loses its lock.
held = lock("import", ttl=2, renew=False).acquire()
for batch in "abc":
    print(f"batch {batch}: {held.remaining():.1f} s remain")
    held.extend()  # at least the lock's own ttl remains
held.extend(30)  # at least 30 s remain
held.extend(by=30)  # what remains and 30 s more
print(f"the last step has {held.remaining():.0f} s")
print(held.release().outcome)
