"""Jobs: work around an attempt, and results as JSON."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable
from typing import Any

from ._callables import is_coroutine_function, refuse_no_callable, refused
from ._decorator import namer
from ._native import Job, JobOutcome, _AroundAttempt
from ._not_run import refuse_function, refuse_result
from .errors import InvalidArgumentError

Work = Callable[..., Any]


def encoded(result: object) -> str | None:
    """The result as JSON text; ``None`` is no result."""
    if result is None:
        return None
    try:
        text = json.dumps(result, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()  # not of a lone surrogate
        json.loads(text, object_pairs_hook=_refuse_twins)
        return text
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"result: JSON can't express it: {error} (given: {type(result).__name__})") from error


def _refuse_twins(pairs: list[tuple[str, object]]) -> None:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("two keys become the same text")


def decoded(text: str) -> object:
    """The value of a result's JSON text; the text itself if it is none, or nested too deeply for this language."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def run(job: Job, work: Work, args: tuple[Any, ...], kwargs: dict[str, Any]) -> JobOutcome:
    """Runs the job in this thread."""
    refuse_no_callable(job, "runs", work)
    if is_coroutine_function(work):
        raise refused(work, "is an `async def`", "run_async()")
    with _AroundAttempt(job) as attempt:
        if isinstance(attempt, JobOutcome):
            return attempt
        # What it raises ends the attempt.
        result = work(attempt, *args, **kwargs)
        refuse_result(work, result)
        text = encoded(result)
        attempt._complete(text)
        return JobOutcome._ran(text, attempt.number)
    raise AssertionError("an attempt swallows no error")


async def run_async(job: Job, work: Work, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> JobOutcome:
    """Runs the job in this task."""
    refuse_no_callable(job, "runs", work)
    attempt = await job._begin_async()
    if isinstance(attempt, JobOutcome):
        return attempt
    async with attempt:
        running = work(attempt, *args, **(kwargs or {}))
        if not inspect.isawaitable(running):
            raise refused(work, "returns nothing to await", "run()")
        result = await running
        refuse_result(work, result)
        text = encoded(result)
        await attempt._complete(text)
        return JobOutcome._ran(text, attempt.number)
    raise AssertionError("an attempt swallows no error")


def decorate(job: Job, function: Work) -> Work:
    """``function``, of which each call runs the job."""
    refuse_no_callable(job, "decorates", function)
    refuse_function(function)
    named = namer(job, job.name, function)
    if is_coroutine_function(function):

        @functools.wraps(function)
        async def run_async_once(*args: Any, **kwargs: Any) -> JobOutcome:
            return await run_async(named(None, *args, **kwargs), function, args, kwargs)

        return run_async_once

    @functools.wraps(function)
    def run_once(*args: Any, **kwargs: Any) -> JobOutcome:
        return run(named(None, *args, **kwargs), function, args, kwargs)

    return run_once
