"""A peer that uses locktender in Python; README.md lists its commands."""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from locktender import AcquireTimeoutError, Attempt, Client, Hold, Leadership, Lock, LockError, LockLostError, MultiLock


def shown(held: Hold | None) -> dict[str, Any]:
    return {"owner": held.owner, "fence": held.fence} if held else {"owner": None}


class Peer:
    def __init__(self, url: str) -> None:
        self._client = Client(url, app="peer python")
        self._held: Hold | None = None
        self._kept: list[Hold] = []

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        match asked["do"]:
            case "try":
                self._held = self._client.lock(asked["name"], ttl=asked["ttl_ms"] / 1e3).try_acquire()
            case "acquire":
                self._held = self._client.lock(asked["name"], wait=asked["wait_ms"] / 1e3).acquire()
            case "adopt":
                self._held = self._client.adopt(asked["ticket"])
            case "release":
                assert self._held
                return {"released": self._held.release().outcome == "released"}
            case "hand_over":
                assert self._held
                return {"ticket": self._held.hand_over()}
            case "inspect":
                return self._inspect(asked["name"])
            case "turn":
                return self._turn(asked["name"], Path(asked["file"]), asked["fair"], asked["who"])
            case "work":
                return self._work(asked["names"], Path(asked["file"]), asked["max_attempts"], asked["ms"])
            case "fire":
                return self._fire(asked["name"], asked["at_ms"], Path(asked["file"]))
            case "lead":
                self._lead(asked["name"], asked["ttl_ms"], Path(asked["file"]))
            case "occupy":
                self._occupy(asked["name"], asked["as"], asked["ttl_ms"], Path(asked["file"]))
            case "keep":
                self._kept = [self._client.lock(name, ttl=asked["ttl_ms"] / 1e3).acquire() for name in asked["names"]]
                return {"fences": [held.fence for held in self._kept]}
            case "let_go":
                return {"released": sum(held.release().outcome == "released" for held in self._kept)}
            case "rotate":
                return self._rotate(asked["names"], Path(asked["file"]), Path(asked["stop"]), asked["wait_ms"])
            case "count":
                return self._count(asked["name"], Path(asked["file"]), asked["times"])
        return shown(self._held)

    def _work(self, names: list[str], file: Path, max_attempts: int, ms: int) -> dict[str, Any]:
        def work(attempt: Attempt) -> int:
            with file.open("a") as lines:
                lines.write(f"{attempt.name} {attempt.number} {attempt.fence}\n")
            time.sleep(ms / 1e3)
            if attempt.number == 1 and attempt.name.endswith("7"):
                raise RuntimeError("the first attempt fails")
            return attempt.fence

        done = 0
        for name in names:
            with suppress(RuntimeError, AcquireTimeoutError, LockLostError):
                self._client.job(name, max_attempts=max_attempts, ttl=0.3, wait=0.1).run(work)
                done += 1
        return {"done": done}

    def _fire(self, name: str, at_ms: int, file: Path) -> dict[str, Any]:
        def work(attempt: Attempt) -> None:
            with file.open("a") as lines:
                lines.write(f"{at_ms} {attempt.fence}\n")

        return {"reason": self._client.cron_job(name, at=at_ms / 1e3).run(work).reason}

    def _lead(self, name: str, ttl_ms: int, file: Path) -> None:
        def work(leadership: Leadership) -> None:
            while True:
                before = time.monotonic_ns()
                leadership.check()
                after = time.monotonic_ns()
                with file.open("a") as lines:
                    lines.write(f"{os.getpid()} {leadership.term} {before} {after}\n")
                time.sleep(0.005)

        self._client.election(name, ttl=ttl_ms / 1e3).lead(work)

    def _occupy(self, name: str, role: str | int, ttl_ms: int, file: Path) -> None:
        client, ttl = self._client, ttl_ms / 1e3
        lock: Lock | MultiLock
        if isinstance(role, int):
            lock = client.semaphore(name, permits=role, ttl=ttl)
        elif role == "wide":
            lock = client.multi_lock([name, f"{name}:2"], ttl=ttl)
        else:
            lock = client.read_lock(name, ttl=ttl) if role == "reader" else client.lock(name, ttl=ttl)
        while True:
            with suppress(LockLostError), lock as held:
                for _ in range(3):
                    before = time.monotonic_ns()
                    held.check()
                    after = time.monotonic_ns()
                    with file.open("a") as lines:
                        fence = held.fence if isinstance(held, Hold) else held.fences[name]
                        lines.write(f"{os.getpid()} {role} {fence} {before} {after}\n")
                    time.sleep(0.003)

    def _inspect(self, name: str) -> dict[str, Any]:
        info = self._client.lock(name).inspect()
        if info is None:
            return {"owner": None}
        fields = info.fields and {key: getattr(info.fields, key) for key in ("app", "host", "pid", "id")}
        if fields:
            fields["at_ms"] = round(info.fields.at.timestamp() * 1e3)
        return {"owner": info.owner, "fence": info.fence, "fields": fields}

    def _turn(self, name: str, file: Path, fair: bool, who: str) -> dict[str, Any]:
        with self._client.lock(name, ttl=60, fair=fair) as held, file.open("a") as order:
            order.write(who + "\n")
        return {"fence": held.fence}

    def _rotate(self, names: list[str], file: Path, stop: Path, wait_ms: int) -> dict[str, Any]:
        def turns(name: str) -> int:
            done = 0
            while done == 0 or not stop.exists():
                with self._client.lock(name, wait=wait_ms / 1e3, fair=name.endswith("7")).acquire() as held, file.open("a") as lines:
                    for _ in range(2):
                        held.check()
                        lines.write(f"{name} {held.fence} python\n")
                        lines.flush()
                        time.sleep(0.02)
                done += 1
            return done

        with ThreadPoolExecutor(len(names)) as threads:
            return {"turns": list(threads.map(turns, names))}

    def _count(self, name: str, file: Path, times: int) -> dict[str, Any]:
        for _ in range(times):
            with self._client.lock(name):
                file.write_text(str(int(file.read_text()) + 1))
        return {}


peer = Peer(sys.argv[1])
for line in sys.stdin:
    try:
        answer = peer.answer(json.loads(line))
    except LockError as error:
        answer = {"error": error.code, "holder": getattr(error, "holder", None)}
    print(json.dumps(answer), flush=True)
