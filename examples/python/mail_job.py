"""Work that must be done once: two workers ask for it, and when one of them fails, the next attempt follows."""

import threading

from locktender import Attempt, Client


class MailServerDown(Exception):
    pass


def send(attempt: Attempt) -> dict[str, int]:
    """A stand-in for a mail server, which is down during the first attempt."""
    print(f"attempt {attempt.number} of {attempt.max_attempts}, fence {attempt.fence}")
    if attempt.number == 1:
        raise MailServerDown("the mail server is down")
    return {"sent": 3}


def work(client: Client, worker: str) -> None:
    job = client.job("example:mail", retry_delay=0.2, retention=60)  # a process that asks a minute later sends the mail again
    while True:
        try:
            outcome = job.run(send)  # waits while the other worker runs the job
        except MailServerDown as error:
            print(f"{worker} failed, and asks again: {error}")
        else:
            print(f"{worker}: {'done by me' if outcome.ran else 'done before'}, {outcome.result}")
            return


with Client() as client:
    workers = [threading.Thread(target=work, args=(client, worker)) for worker in ("Diego", "Milten")]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join()
    status = client.job("example:mail").status()
    print(f"{status.state} after {status.attempts} attempts, by {status.last_owner}")
