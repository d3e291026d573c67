"""Holds a lock around some work. LOCKTENDER_URL=redis://localhost python hello.py"""

from locktender import lock

# Renewed in the background for as long as the body takes; AcquireTimeoutError after 5 s.
with lock("orders:42", ttl=10, wait=5) as held:
    print(f"{held.name} is held with fence {held.fence}")
    print(f"somebody else gets {lock('orders:42').try_acquire()}")
print("done")
