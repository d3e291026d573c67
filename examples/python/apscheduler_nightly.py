"""A nightly job that one of several replicas runs: APScheduler starts it in each replica, and the lock admits one."""

import threading
import time
from datetime import datetime

from apscheduler.schedulers.background import BackgroundScheduler
from locktender import Client

client = Client()
done = threading.Barrier(3)


@client.lock("example:nightly", ttl=10).skip
def nightly(replica: str) -> str:
    # As long as clocks may differ. Otherwise a late replica would find the lock free and run the job a second time.
    time.sleep(1)
    return f"{replica} ran the nightly job"


def fire(replica: str) -> None:
    print(nightly(replica) or f"{replica} left it to another", flush=True)
    done.wait()


now = datetime.now()
replicas = [BackgroundScheduler() for _ in range(2)]
for number, scheduler in enumerate(replicas, 1):
    scheduler.add_job(fire, "date", run_date=now, args=[f"replica {number}"], misfire_grace_time=60)
    scheduler.start()
done.wait()
for scheduler in replicas:
    scheduler.shutdown()
client.close()
