"""The stage: it runs the three processes, and kills or pauses them."""

import asyncio
import json
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from history import History
from server import PrivateServer

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

FIGHTERS: dict[str, tuple[str, list[str | Path]]] = {
    "Diego": ("Python", [sys.executable, HERE / "diego.py"]),
    "Gorn": ("Node", ["node", HERE / "gorn.mjs"]),
    "Milten": ("Rust", [ROOT / ".venv/bin/milten"]),
}

# When a process is killed or paused, as parts of the fight: the next process that bites.
KILL_AT, PAUSE_AT = 0.25, 0.6
# For how many ttls a killed or paused process is gone: longer than any hold remains, so another process gets the lock.
GONE_FOR = 3

# With several servers: when two of them are killed together, and when these restart, as parts of the fight. The second time
# the lock depends on the two that were killed before.
OUTAGES = [(0.4, 0.5, (0, 1)), (0.75, 0.85, (2, 3))]
SERVERS = "Servers"
# For how many ttls a server that was killed doesn't vote: no hold of this fight ever remains for longer.
QUARANTINE = 2


class Notice(NamedTuple):
    """A notice of a process, or an event that happened to it."""

    at: float
    who: str
    event: str
    said: dict[str, Any]


@dataclass
class Tally:
    """The results of a process, by its notices."""

    acquisitions: int = 0
    waits: int = 0
    longest_wait: float = 0.0
    losses: int = 0
    fate: str = ""


class Stage:
    def __init__(self, servers: list[PrivateServer], shared: Path, seconds: float, ttl: float) -> None:
        self._servers = servers
        self._shared = shared
        self._urls = [server.url for server in servers]
        self._arguments = [",".join(self._urls), str(shared)]
        self._seconds = seconds
        self._ttl = ttl
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._readers: list[asyncio.Task[None]] = []
        self._show: Callable[[Notice], None] = lambda notice: None
        # The next process that bites is killed or paused.
        self._struck: asyncio.Future[Notice] | None = None
        self.tallies = {who: Tally() for who in FIGHTERS}
        self.failed = 0

    @property
    def rows(self) -> list[str]:
        """The names that notices are about."""
        return [*FIGHTERS, SERVERS] if len(self._servers) > 1 else [*FIGHTERS]

    async def play(self, show: Callable[[Notice], None]) -> None:
        """Runs the fight, and passes each notice to `show`."""
        self._show = show
        self._began = time.time()
        outages = []
        if len(self._servers) > 1:
            await self._vouch()
            outages = [self._outage(*outage) for outage in OUTAGES]
        try:
            await asyncio.gather(*map(self._enter, FIGHTERS))
            await asyncio.gather(self._befall(), *outages)
            await asyncio.gather(*self._readers)
        finally:
            # After Ctrl-C nobody fights on without a server.
            for process in self._processes.values():
                if process.returncode is None:
                    process.kill()
                    await process.wait()

    async def _vouch(self) -> None:
        """Lets the servers vote at once: they are new, so no client can hold a lock there."""
        from locktender import Client  # here, because --check needs nothing installed

        with Client(self._urls, ttl=self._ttl, max_ttl=self._ttl * QUARANTINE) as client:
            await client.initialize_quorum_async()

    async def _befall(self) -> None:
        """Kills and pauses processes and servers."""
        await self._kill()
        await self._pause()

    def _moment(self, part: float) -> float:
        """The seconds until so much of the fight is over."""
        return max(0.0, self._began + self._seconds * part - time.time())

    async def _enter(self, who: str) -> None:
        """Starts a process that fights for the remaining time."""
        _, command = FIGHTERS[who]
        arguments = [*self._arguments, str(self._ttl), str(self._began + self._seconds)]
        process = await asyncio.create_subprocess_exec(*command, *arguments, stdout=asyncio.subprocess.PIPE)
        self._processes[who] = process
        self._readers.append(asyncio.create_task(self._read(who, process)))

    async def _read(self, who: str, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            said = json.loads(line)
            self._notice(Notice(time.time(), who, said.pop("event"), said))
        code = await process.wait()
        if code not in (0, -signal.SIGKILL):
            print(f"{who} ended with {code}", file=sys.stderr)
            self.failed = 1

    def _notice(self, notice: Notice) -> None:
        # Events of servers are counted for no process.
        tally = self.tallies.get(notice.who, Tally())
        match notice.event:
            case "waits":
                tally.waits += 1
            case "takes":
                tally.acquisitions += 1
                tally.longest_wait = max(tally.longest_wait, notice.said["waited"])
            case "loses":
                tally.losses += 1
            case "bites" if self._struck and not self._struck.done():
                self._struck.set_result(notice)
        self._show(notice)

    async def _strike(self, part: float) -> str | None:
        """Waits until so much of the fight is over, then stops the next process that bites: after its check, before its write."""
        await asyncio.sleep(self._moment(part))
        while True:
            self._struck = asyncio.get_running_loop().create_future()
            try:
                bite = await asyncio.wait_for(self._struck, self._moment(1))
            except asyncio.TimeoutError:  # TimeoutError itself from Python 3.11 on
                print("nobody bites any more: the fight is too short", file=sys.stderr)
                return None
            process = self._processes[bite.who]
            process.send_signal(signal.SIGSTOP)
            if not self._wrote(bite):
                return bite.who
            # On a busy machine its notice was read too late: the next bite, then.
            process.send_signal(signal.SIGCONT)

    def _wrote(self, bite: Notice) -> bool:
        """Whether the line of this bite is in the shared file."""
        lines = History.read(self._shared).lines
        return any((line.who, line.checked) == (bite.who, bite.said["checked"]) for line in lines)

    def _fate(self, who: str, event: str) -> None:
        self.tallies[who].fate = event
        self._notice(Notice(time.time(), who, event, {}))

    async def _kill(self) -> None:
        if who := await self._strike(KILL_AT):
            self._processes[who].kill()
            self._fate(who, "is killed")
            await asyncio.sleep(self._ttl * GONE_FOR)
            self._notice(Notice(time.time(), who, "comes back", {}))
            await self._enter(who)

    async def _pause(self) -> None:
        if who := await self._strike(PAUSE_AT):
            self._fate(who, "is paused")
            await asyncio.sleep(self._ttl * GONE_FOR)
            self._notice(Notice(time.time(), who, "goes on", {}))
            self._processes[who].send_signal(signal.SIGCONT)

    async def _outage(self, from_part: float, to_part: float, numbers: tuple[int, int]) -> None:
        """Kills two servers at once, a minority. One restarts with its data, the other empty."""
        await asyncio.sleep(self._moment(from_part))
        kept, emptied = (self._servers[number] for number in numbers)
        kept.kill()
        emptied.kill()
        self._notice(Notice(time.time(), SERVERS, "two die", {"alive": len(self._servers) - 2}))
        await asyncio.sleep(self._moment(to_part))
        await asyncio.to_thread(kept.revive, empty=False)
        await asyncio.to_thread(emptied.revive, empty=True)
        self._notice(Notice(time.time(), SERVERS, "come back", {"one": "empty", "both vote after": f"{self._ttl * QUARANTINE:g} s"}))
