"""A task that one of several replicas runs at each scheduled time: APScheduler starts it in each, and ``cron_job`` admits one.

python apscheduler_nightly.py      # in two terminals; the clocks of two machines may differ
"""

import time

from apscheduler.schedulers.background import BackgroundScheduler
from locktender import Attempt, Client

client = Client()
# APScheduler 3 doesn't pass the planned time to a function: it is now, rounded. For a task at 02:00 a minute is right, the default.
nightly = client.cron_job("example:nightly", every=1)


def tidy(attempt: Attempt) -> str:
    return f"{nightly.status().scheduled_time}"  # the result, also for the other replicas


def fire() -> None:
    outcome = nightly.run(tidy)
    print(f"{outcome.result} {'ran' if outcome.ran else f'left out: {outcome.reason}'}", flush=True)


scheduler = BackgroundScheduler()
scheduler.add_job(fire, "cron", second="*", misfire_grace_time=60, coalesce=True)
scheduler.start()
time.sleep(3)  # the work of the service
scheduler.shutdown()
client.close()
