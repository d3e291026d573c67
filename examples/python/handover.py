"""Hands a held lock to another process, as a web request does to a background job. LOCKTENDER_URL=redis://localhost python handover.py"""

from locktender import Client, lock

held = lock("report:2026").acquire()
print(f"the request holds it with fence {held.fence}")
ticket = held.hand_over()  # a string: put it into the job's arguments

# In another process, with another client. The ticket works once, and until the lock's ttl has passed.
with Client() as job:
    held = job.adopt(ticket)
    print(f"the job holds it with fence {held.fence}")
    print(held.release().outcome)
