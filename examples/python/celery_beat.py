"""Several Celery beats: each knows the whole schedule, and each task is sent once per scheduled time.

    celery --app celery_beat beat --scheduler celery_beat:OnceScheduler      # in each replica, with a --schedule file of its own
    python celery_beat.py                                                    # one beat for three seconds, without a broker

Beat does not say for which time it planned a task, so that is now, rounded to the interval, or to a minute for a crontab. It is
rounded where the task is sent: in a worker a task may arrive much later.
"""

import threading
from tempfile import TemporaryDirectory
from typing import Any

from celery import Celery
from celery.beat import PersistentScheduler, ScheduleEntry, Service
from locktender import Attempt, Client

app = Celery("celery_beat")
app.conf.beat_schedule = {"report": {"task": "report", "schedule": 1.0}}
client = Client()


@app.task(name="report")
def report() -> None:
    """A stand-in for the report."""


class OnceScheduler(PersistentScheduler):
    def apply_async(self, entry: ScheduleEntry, producer: Any = None, advance: bool = True, **options: Any) -> None:
        # If a beat dies while it sends, another one sends: it waits for that as a backup.
        every = getattr(entry.schedule, "run_every", 60)
        once = client.cron_job(f"beat:{entry.name}", every=every, max_attempts=3, wait=10)

        def send(attempt: Attempt) -> str:
            super(OnceScheduler, self).apply_async(entry, producer, advance, **options)
            return f"{once.status().scheduled_time}"

        outcome = once.run(send)
        print(f"{outcome.result} {'ran' if outcome.ran else f'left out: {outcome.reason}'}", flush=True)


if __name__ == "__main__":
    app.conf.update(broker_url="memory://", task_always_eager=True)  # instead of a broker and a worker
    with TemporaryDirectory() as place:
        beat = Service(app, schedule_filename=f"{place}/schedule", scheduler_cls=OnceScheduler)
        threading.Timer(3, beat.stop).start()
        beat.start()
    client.close()
