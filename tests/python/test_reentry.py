"""Signal handlers and finalizers that use a lock, while the first use of something is under way on the same thread.

A finder of modules stands in for the moment: what it is told to do it does when the module is first imported, so in the middle of
that use.
"""

import pytest
from support.script import run
from support.server import RealServer

PROGRAM = """
    import gc, pickle, signal, sys, threading
    from collections import deque
    from locktender import Client

    url, name, moment, striker = sys.argv[1:]
    events = deque()

    def on_event(event):
        events.append(event)

    # Without an imported logging it is the callback that needs it.
    client = Client(url, app="reentry", on_event=on_event)
    reached, struck = [], []

    def strike(*_):
        try:
            with client.lock(name + ":inner", ttl=5) as held:
                struck.append(held.is_valid())
        except BaseException as error:
            struck.append(repr(error))

    class Garbage:
        def __init__(self):
            self.cycle = self
        def __del__(self):
            strike()

    class Finder:
        def find_spec(self, module, path=None, target=None):
            if module != moment or reached:
                return None
            reached.append(module)
            if striker == "signal":
                signal.raise_signal(signal.SIGUSR1)
            elif striker == "finalizer":
                Garbage()
                gc.collect()
            else:
                thread = threading.Thread(target=strike)
                thread.start()
                thread.join(0.3)  # it may have to wait for the import
                threads.append(thread)

    threads = []
    signal.signal(signal.SIGUSR1, strike)
    sys.meta_path.insert(0, Finder())

    async def main():
        async with client.lock(name + ":async") as held:
            await held.wait_lost(0.01)

    def first_uses():
        with client.lock(name) as held:
            held.extend()
        pickle.dumps(client)
        client.lock(name)(lambda: None)()
        import asyncio
        asyncio.run(main())
        try:
            with client.lock(name + ":failed", max_hold=0.05) as held:
                held.wait_lost(10)
                raise ValueError("of the body")
        except ValueError:
            pass
        try:
            with client.lock(name + ":lost") as held:
                held.release()
                held.check()
        except Exception as error:
            print(type(error).__name__)
        try:
            with client.lock(name + ":lost"):
                client.lock(name + ":lost", wait=0).acquire()
        except TimeoutError as error:
            print(error.code)

    first_uses()
    for thread in threads:
        thread.join(5)
    while not any(event.kind == "acquired" and event.lock_name == name + ":inner" for event in list(events)):
        pass
    print(struck, bool(reached))
"""

# Every module that is imported by a use and not by `import locktender`.
MOMENTS = ["logging", "locktender._events", "locktender._pickle", "locktender._decorator", "locktender._asyncio", "locktender._bodies"]


@pytest.mark.parametrize("striker", ["signal", "finalizer", "thread"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_lock_in_the_middle_of_a_first_use(server: RealServer, name, moment, striker):
    assert run(PROGRAM, server.url, name, moment, striker) == "NotHeldError\nACQUIRE_TIMEOUT\n[True] True\n"
