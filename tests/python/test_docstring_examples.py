"""The examples of the docstrings are run, and every verb has one."""

import ast
import asyncio
import inspect
import sys
import textwrap
import threading
import uuid

import locktender
import pytest
import redis
from locktender.testing import Clock, ScriptedServer
from support.script import run
from test_docstrings import DOCUMENTED


def examples(dotted):
    """What stands indented between blank lines: one text, which may have blank lines of its own."""
    text = ast.get_docstring(DOCUMENTED[dotted], clean=False) or ""
    paragraphs = text.replace("\n" + " " * DOCUMENTED[dotted].body[0].col_offset, "\n").split("\n\n")
    return "\n\n".join(textwrap.dedent(each) for each in paragraphs if each.startswith("    "))


EXAMPLES = {dotted: text for dotted in DOCUMENTED if (text := examples(dotted))}


def needs_one(dotted):
    """A verb, but no twin for asyncio, nor what only says where the verb is."""
    node, kind = DOCUMENTED[dotted], dotted.partition(".")[0]
    is_verb = isinstance(node, ast.FunctionDef) and not node.decorator_list
    return is_verb and not dotted.endswith("_async") and kind not in ("AsyncHold", "AsyncMultiHold", "_TaskHold", "AsyncAttempt", "AsyncLeadership") and "Not here" not in ast.get_docstring(node)


def test_every_verb_has_an_example():
    """Its own, or its class's."""
    shown = {dotted: EXAMPLES.get(dotted.partition(".")[0], "") for dotted in DOCUMENTED}
    without = [dotted for dotted in DOCUMENTED if needs_one(dotted) and dotted not in EXAMPLES]
    assert [dotted for dotted in without if f".{dotted.rpartition('.')[2]}(" not in shown[dotted]] == []


async def sent(attempt):
    return {"sent": 3}


def program(url, text):
    """What the examples take for granted."""
    client = locktender.Client(url, wait=5)
    stop, rows = threading.Event(), []
    given = {
        "client": client,
        "lock": client.lock if "lock(" in text else client.lock("orders"),
        "locks": client.multi_lock(["orders", "stock"]),
        # A server in this process takes no credentials.
        "Client": lambda *servers, **options: locktender.Client(*(servers if "credentials" in options else [url]), **options),
        "configure": lambda *servers, **options: locktender.Client(url, **options).close(),
        "safe_name": locktender.safe_name,
        "ScriptedServer": ScriptedServer,
        "Clock": Clock,
        "server": ScriptedServer(),
        "threading": threading,
        "redis": redis,
        "user": "somebody@example.org",
        "row": "a row",
        "write": lambda row, fence: rows.append(fence),
        "send": lambda attempt: {"sent": 3},
        "send_async": sent,
        "Attempt": locktender.Attempt,
        "schedule": lambda leadership: given["election"].stop(),
        "schedule_async": sent,
        "work_a_little": lambda: given.get("stop", stop).set(),
    }
    if "hold." in text and not any(made in text for made in ("hold =", "as hold", "for hold in")):
        given["hold"] = client.lock("orders").acquire()
    if text.startswith("attempt."):
        given["attempt"] = client.job("mail").begin()
    if text.startswith("leadership."):
        given["leadership"] = client.election("scheduler").campaign()
    if text.startswith("clock."):
        given["clock"] = Clock()
    if "ticket)" in text:
        given["ticket"] = client.lock("orders").acquire().hand_over()
    return given


@pytest.mark.parametrize("dotted", EXAMPLES)
def test_the_example_runs(dotted):
    if not dotted.startswith("Clock"):
        return run_example(dotted)
    # The clock is the whole process's, and stays where an example has moved it.
    child = f"import sys; sys.path[:0] = {sys.path!r}; from test_docstring_examples import run_example; run_example({dotted!r})"
    assert run(child) == ""


def run_example(dotted):
    text = EXAMPLES[dotted]
    given = program(f"memory://{uuid.uuid4().hex}", text)
    given["Client"].from_redis = locktender.Client.from_redis
    code = compile(text, dotted, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    async def run_async():
        done = eval(code, given)
        if inspect.isawaitable(done):
            await done

    asyncio.run(run_async()) if code.co_flags & inspect.CO_COROUTINE else eval(code, given)
    if isinstance(given.get("hold"), locktender.Hold) and given["hold"].is_valid():
        given["hold"].release()
    given["client"].close()
