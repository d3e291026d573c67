"""A scene: one case while it is played."""

import asyncio
import inspect
import os
import platform
import time
from collections.abc import Awaitable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from typing import Any

from locktender import Client, LockError, Observer, safe_name
from support.checkout import certificate

from .matching import Variables, mismatch
from .place import Place
from .play import driven, options
from .seen import counted, describe, ended, look, observed, outcome, show, show_grant, show_hold, status

# How long something that is certain to happen may take, in seconds.
PATIENCE = 20.0


class Failed(AssertionError):
    """A step saw something else than it expects."""


# What JSON can't express.
ODD = {"not_a_number": float("nan"), "endless": [float("-inf")], "set": {"sent": {1, 2}}, "function": {"sent": print}, "surrogate": "\ud800"}


class BodyError(Exception):
    """What a body raises that is told to."""


class Scene:
    """A case on a place, played by blocking calls or under asyncio: `asynchronous` says which."""

    def __init__(self, case: dict[str, Any], place: Place, name: str, asynchronous: bool) -> None:
        self._case = case
        self._place = place
        self._asynchronous = asynchronous
        self._clients: dict[str, Client] = {}
        self._kinds: dict[str, list[str]] = {}
        self._holds: dict[str, Any] = {}
        self._observers: dict[str, Observer] = {}
        self._later: dict[str, Future[Any] | asyncio.Task[Any]] = {}
        self._threads = ThreadPoolExecutor(4)
        # In whole milliseconds.
        self._start = datetime.fromtimestamp(int(time.time() * 1e3) / 1e3, timezone.utc)
        self._variables = Variables()
        for key, value in {"name": name, "ca": certificate("ca.pem"), "pid": os.getpid(), "host": platform.node()}.items():
            self._variables.set(key, value if key == "name" else str(value))

    async def play(self) -> None:
        """Plays every step; the first that sees something else than it expects ends the case."""
        try:
            await self._steps(self._case["steps"])
        finally:
            for client in self._clients.values():
                await self._done(client, "close")
            self._threads.shutdown()
            self._holds.clear()

    async def _steps(self, steps: list[dict[str, Any]]) -> None:
        for index, step in enumerate(steps):
            began = time.monotonic()
            try:
                seen = await self._act(step)
            except LockError as error:
                seen = describe(error)
            seen["took_ms"] = (time.monotonic() - began) * 1e3
            expected = self._variables.fill(step.get("expect", {}))
            surprise = [key for key in ("error", "busy") if seen.get(key) and key not in expected]
            if why := surprise or mismatch(expected, seen):
                raise Failed(f"step {index} ({step['do']}): {why}\n    seen: {seen}")

    async def _act(self, step: dict[str, Any]) -> dict[str, Any]:
        act = getattr(self, "_do_" + step["do"])
        seen: dict[str, Any] | None = await act({**self._variables.fill(step), **{key: step.get(key) for key in ("steps", "terms")}})
        return seen or {}

    async def _done(self, of: Any, verb: str, *arguments: Any, **keywords: Any) -> Any:
        """Calls a method of the chosen way and waits for its end."""
        if self._asynchronous and not inspect.isclass(of) and hasattr(of, verb + "_async"):
            verb += "_async"
        result = getattr(of, verb)(*arguments, **keywords)
        return await result if isinstance(result, Awaitable) else result

    async def _pause(self, seconds: float) -> None:
        if self._asynchronous:
            await asyncio.sleep(seconds)
        else:
            time.sleep(seconds)

    def _client(self, step: dict[str, Any]) -> Client:
        name = step.get("client", "client")
        if name not in self._clients:
            wanted = options(self._variables.fill(self._case.get("clients", {}).get(name, {})))
            kinds = self._kinds.setdefault(name, [])
            # Under asyncio a loss would cancel the body, which is to go on here.
            wanted = {"on_lost": "continue", "on_event": lambda event: kinds.append(event.kind), **self._place.patience, **wanted}
            self._clients[name] = client = Client(self._place.urls or None, **wanted)
            if self._place.name == "quorum":
                # So that no attempt has to make three connections within the time that an answer may take.
                client.check_servers()
        return self._clients[name]

    def _lock(self, step: dict[str, Any]) -> Any:
        wanted = dict(step.get("lock", {}))
        client = self._client(step)
        if "names" in wanted:
            return client.multi_lock(wanted.pop("names"), **options(wanted))
        make = client.semaphore if "permits" in wanted else client.read_lock if wanted.pop("read", False) else client.lock
        return make(wanted.get("name", self._variables.fill("$name")), **options(wanted))

    def _job(self, step: dict[str, Any]) -> Any:
        wanted = dict(step.get("cron_job", step.get("job", {})))
        name = wanted.get("name", self._variables.fill("$name"))
        client = self._client(step)
        if "cron_job" not in step:
            return client.job(name, **options(wanted))
        if "at_ms" in wanted:
            wanted["at"] = self._start + timedelta(milliseconds=wanted.pop("at_ms"))
        if "at_epoch_ms" in wanted:
            wanted["at"] = wanted.pop("at_epoch_ms") / 1e3
        return client.cron_job(name, **options(wanted))

    def _election(self, step: dict[str, Any]) -> Any:
        return self._client(step).election(self._variables.fill("$name"), **options(step.get("election", {})))

    def _keep(self, step: dict[str, Any], held: Any) -> dict[str, Any]:
        if held is None:
            return {"done": True}
        name = step.get("as", "held")
        self._holds[name] = held
        self._variables.set(f"{name}.owner", held.owner)
        if hasattr(held, "fence"):
            self._variables.set(f"{name}.fence", held.fence)
        return look(held)

    def _held(self, step: dict[str, Any]) -> Any:
        return self._holds[step.get("on", "held")]

    async def _do_open(self, step: dict[str, Any]) -> None:
        self._client(step)

    async def _do_acquire(self, step: dict[str, Any]) -> dict[str, Any] | None:
        return await self._begin(step, self._lock(step), "acquire")

    async def _begin(self, step: dict[str, Any], of: Any, verb: str) -> dict[str, Any] | None:
        if "later" not in step:
            return self._keep(step, await self._done(of, verb))
        if self._asynchronous:
            self._later[step["later"]] = asyncio.ensure_future(self._done(of, verb))
            await asyncio.sleep(0)
        else:
            self._later[step["later"]] = self._threads.submit(getattr(of, verb))
        return None

    async def _do_begin(self, step: dict[str, Any]) -> dict[str, Any] | None:
        return await self._begin(step, self._job(step), "begin")

    async def _do_campaign(self, step: dict[str, Any]) -> dict[str, Any] | None:
        return await self._begin(step, self._election(step), "campaign")

    async def _do_try_campaign(self, step: dict[str, Any]) -> dict[str, Any]:
        leadership = await self._done(self._election(step), "try_campaign")
        return {"busy": True} if leadership is None else self._keep(step, leadership)

    async def _do_lead(self, step: dict[str, Any]) -> dict[str, Any]:
        election, terms = self._election(step), iter(step["terms"])
        left = len(step["terms"])

        async def work(leadership: Any) -> None:
            nonlocal left
            term = next(terms)
            left -= 1
            self._keep(term, leadership)
            if not left:
                election.stop()
            assert leadership.stopping == (not left)
            await self._steps(term["steps"])
            if term.get("checks"):
                leadership.check()
            if error := term.get("raises"):
                raise BodyError(error)

        try:
            if self._asynchronous:
                await election.lead_async(work)
            else:
                election.lead(lambda leadership: driven(work(leadership)))
        except BodyError as error:
            return {"error": "BODY", "message": str(error)}
        return {"stopped": True}

    async def _do_observe(self, step: dict[str, Any]) -> dict[str, Any]:
        if "of" not in step:
            self._observers[step["as"]] = self._election(step).observe()
        observer = self._observers[step.get("of") or step["as"]]
        return observed(await anext(observer) if self._asynchronous else next(observer))

    async def _do_resign(self, step: dict[str, Any]) -> dict[str, Any]:
        return ended(await self._done(self._held(step), "resign"))

    async def _do_run(self, step: dict[str, Any]) -> dict[str, Any]:
        job = self._job(step)
        try:
            if self._asynchronous:
                return outcome(await job.run_async(self._work, step))
            return outcome(job.run(lambda attempt: driven(self._work(attempt, step))))
        except BodyError as error:
            return {"error": "BODY", "message": str(error)}

    async def _work(self, attempt: Any, step: dict[str, Any]) -> Any:
        self._keep(step, attempt)
        await self._steps(step["steps"])
        if step.get("checks"):
            attempt.check()
        if error := step.get("raises"):
            raise BodyError(error)
        return ODD[step["odd"]] if "odd" in step else step.get("returns")

    async def _do_complete(self, step: dict[str, Any]) -> None:
        await self._done(self._held(step), "complete", step["result"])

    async def _do_fail(self, step: dict[str, Any]) -> None:
        await self._done(self._held(step), "fail", step["message"], **options({key: step[key] for key in step.keys() & {"retry_in_ms", "retry"}}))

    async def _do_status(self, step: dict[str, Any]) -> dict[str, Any]:
        return status(await self._done(self._job(step), "status"), self._start)

    async def _do_reset(self, step: dict[str, Any]) -> dict[str, Any]:
        return {"reset": await self._done(self._job(step), "reset")}

    async def _do_join(self, step: dict[str, Any]) -> dict[str, Any]:
        later = self._later[step["of"]]
        if isinstance(later, Future):
            return self._keep(step, later.result(PATIENCE))
        return self._keep(step, await asyncio.wait_for(later, PATIENCE))

    async def _do_cancel(self, step: dict[str, Any]) -> None:
        later = self._later[step["of"]]
        assert isinstance(later, asyncio.Task)
        later.cancel()
        with suppress(asyncio.CancelledError):
            await later

    async def _do_try_acquire(self, step: dict[str, Any]) -> dict[str, Any]:
        held = await self._done(self._lock(step), "try_acquire")
        return {"busy": True} if held is None else self._keep(step, held)

    async def _do_adopt(self, step: dict[str, Any]) -> dict[str, Any]:
        options = {"or_acquire": step["or_acquire"]} if "or_acquire" in step else {}
        return self._keep(step, await self._done(self._client(step), "adopt", step["ticket"], **options))

    async def _do_body(self, step: dict[str, Any]) -> dict[str, Any]:
        result = None
        lock = self._lock(step)
        try:
            if self._asynchronous:
                async with lock as held:
                    result = await self._body(step, held)
            else:
                with lock as held:
                    result = await self._body(step, held)
        except BodyError as error:
            lost = getattr(error, "lock_error", None)
            return {"error": "BODY", "lock_error": lost and lost.code}
        except LockError as error:
            # A `with` doesn't know the result, but whoever wrote it does.
            return {**describe(error), "result": result}
        return {"result": result}

    async def _body(self, step: dict[str, Any], held: Any) -> Any:
        self._keep(step, held)
        await self._steps(step["steps"])
        if step.get("raises"):
            raise BodyError
        return step.get("returns")

    async def _do_extend(self, step: dict[str, Any]) -> dict[str, Any]:
        held = self._held(step)
        await self._done(held, "extend", **options({key: step[key] for key in step.keys() & {"ttl_ms"}}))
        return look(held)

    async def _do_extend_by(self, step: dict[str, Any]) -> dict[str, Any]:
        held = self._held(step)
        await self._done(held, "extend", **options({"by_ms": step["by_ms"]}))
        return look(held)

    async def _do_release(self, step: dict[str, Any]) -> dict[str, Any]:
        return ended(await self._done(self._held(step), "release"))

    async def _do_look(self, step: dict[str, Any]) -> dict[str, Any]:
        return look(self._held(step))

    async def _do_hand_over(self, step: dict[str, Any]) -> dict[str, Any]:
        ticket = await self._done(self._held(step), "hand_over")
        self._variables.set(step["as"], ticket)
        return {"ticket": ticket}

    async def _do_downgrade(self, step: dict[str, Any]) -> dict[str, Any]:
        return self._keep(step, await self._done(self._held(step), "downgrade"))

    async def _do_inspect(self, step: dict[str, Any]) -> dict[str, Any]:
        return show(await self._done(self._lock(step), "inspect"))

    async def _do_locks(self, step: dict[str, Any]) -> dict[str, Any]:
        locks = await self._done(self._client(step), "locks", step["pattern"], limit=step.get("limit"))
        return {"count": len(locks), "locks": [show(lock) for lock in locks]}

    async def _do_history(self, step: dict[str, Any]) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while True:
            grants = await self._done(self._client(step), "history", step.get("name"), limit=step.get("limit"))
            if "until" not in step or grants and grants[0].state == step["until"]:
                return {"count": len(grants), "grants": [show_grant(grant) for grant in grants]}
            assert time.monotonic() < deadline, f"the history is {grants}"
            await self._pause(0.005)

    async def _do_holds(self, step: dict[str, Any]) -> dict[str, Any]:
        return {"holds": [show_hold(hold) for hold in self._client(step).holds()]}

    async def _do_force_release(self, step: dict[str, Any]) -> dict[str, Any]:
        return show(await self._done(self._lock(step), "force_release", owner=step.get("owner")))

    async def _do_wait_lost(self, step: dict[str, Any]) -> dict[str, Any]:
        loss = await self._done(self._held(step), "wait_lost", PATIENCE)
        assert loss, "the lock is not lost"
        return {"reason": loss.reason, "next_owner": loss.next_owner, "next_fence": loss.next_fence}

    async def _do_wait_free(self, step: dict[str, Any]) -> None:
        # A majority has released a lock, and let it expire, before the last server of a quorum.
        deadline = time.monotonic() + PATIENCE
        lock = self._lock(step)
        while await self._done(lock, "inspect") or any(self._place.replies("EXISTS", lock.name)):
            assert time.monotonic() < deadline, "the lock does not become free"
            await self._pause(0.005)

    async def _do_events(self, step: dict[str, Any]) -> None:
        self._client(step)
        kinds = self._kinds[step.get("client", "client")]
        deadline = time.monotonic() + PATIENCE
        while not self._in_order(step["kinds"], kinds[:]):
            assert time.monotonic() < deadline, f"the events were {kinds}"
            await self._pause(0.002)

    @staticmethod
    def _in_order(wanted: list[str], kinds: list[str]) -> bool:
        rest = iter(kinds)
        return all(kind in rest for kind in wanted)

    async def _do_metrics(self, step: dict[str, Any]) -> dict[str, Any]:
        return counted(self._client(step).metrics(), step["expect"], step.get("labels", {}))

    async def _do_safe_name(self, step: dict[str, Any]) -> dict[str, Any]:
        return {"name": safe_name(step["text"])}

    async def _do_close(self, step: dict[str, Any]) -> None:
        await self._done(self._client(step), "close")

    async def _do_server(self, step: dict[str, Any]) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while True:
            reply = self._place.reply(*step["command"])
            awaited = "until" in step and mismatch(step["until"], reply)
            if not awaited or time.monotonic() > deadline:
                return {"reply": reply}
            await self._pause(0.005)

    async def _do_script(self, step: dict[str, Any]) -> None:
        assert self._place.scripted, "this place plays no script"
        self._place.scripted.play("\n".join(step["lines"]))

    async def _do_pass_ms(self, step: dict[str, Any]) -> None:
        await self._pause(step["ms"] / 1e3)

    async def _do_fork(self, step: dict[str, Any]) -> None:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                await self._steps(step["steps"])
                status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        assert status == 0, "the child's steps failed, see its output"
