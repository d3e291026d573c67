"""A Celery task that many clients may request, and that one worker at a time runs.

    celery --app celery_report worker      # in this directory
    python celery_report.py                # requests it three times

The broker is CELERY_BROKER_URL, else the server of the locks.
"""

import os
import time

from celery import Celery
from locktender import Client

url = os.environ["LOCKTENDER_URL"]
app = Celery("celery_report", broker=os.environ.get("CELERY_BROKER_URL", url), backend=os.environ.get("CELERY_BROKER_URL", url))

client = Client()  # made before the worker forks; every child connects by itself


@app.task
@client.lock("example:report:{day}").skip_if_busy  # no wait: the holder of the lock makes the report
def report(day: str) -> str:
    time.sleep(0.5)
    return f"process {os.getpid()} made the report of {day}"


if __name__ == "__main__":
    for asked in [report.delay("monday") for _ in range(3)]:
        print(asked.get(timeout=30) or "another worker is making it")
