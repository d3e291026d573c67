"""The contract: the cases of tests/contract, by blocking calls and under asyncio."""

import asyncio
import json
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from contract.place import Place, Places, names
from contract.scene import Scene
from support.checkout import ROOT

FILES = sorted((ROOT / "tests/contract").glob("*.json"))
MOST_AT_ONCE = 8


@pytest.fixture(scope="module")
def places() -> Iterator[Places]:
    with ExitStack() as stack:
        yield Places(stack)


def wanted(case: dict[str, Any], asynchronous: bool) -> bool:
    # What a forked child may do under a running loop, asyncio itself doesn't say.
    forks = any(step["do"] == "fork" for step in case["steps"])
    # Nobody can cancel a blocking call.
    cancels = any(step["do"] == "cancel" for step in case["steps"])
    return "python" in case.get("languages", ["python"]) and not (forks if asynchronous else cancels)


def alone(case: dict[str, Any]) -> bool:
    """Whether the case changes something that the whole process shares."""
    return "environment" in case or any(step["do"] == "fork" for step in case["steps"])


def play(case: dict[str, Any], place: Place, name: str, asynchronous: bool) -> str | None:
    """Plays a case; what went wrong, if anything did."""
    try:
        scene = Scene(case, place, name, asynchronous).play()
        if asynchronous:
            asyncio.run(scene)
        else:
            scene.send(None)  # nothing in it ever suspends
    except StopIteration:
        return None
    except AssertionError as error:
        return f"{case['case']} [{place.name}]\n    {error}"
    except Exception:
        return f"{case['case']} [{place.name}]\n{traceback.format_exc()}"
    return None


@pytest.mark.parametrize("asynchronous", [False, True], ids=["blocking", "asyncio"])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_contract(file, asynchronous: bool, places: Places, monkeypatch: pytest.MonkeyPatch):
    cases = [case for case in json.loads(file.read_text()) if wanted(case, asynchronous)]
    plays = [(case, places.make(at), at) for case in cases for at in names(case.get("at", "any"))]
    named = [(case, place, f"{file.stem}-{index}-{asynchronous}") for index, (case, place, _) in enumerate(plays)]
    # Several at once, for they mostly wait; not so many that they keep each other from being on time.
    with ThreadPoolExecutor(MOST_AT_ONCE) as threads:
        together = [threads.submit(play, *each, asynchronous) for each in named if not alone(each[0])]
    failures = [each.result() for each in together]
    for case, place, name in named:
        if alone(case):
            with monkeypatch.context() as patch:
                for key, value in case.get("environment", {}).items():
                    patch.setenv(key, value)
                failures.append(play(case, place, name, asynchronous))
    failures = [failure for failure in failures if failure]
    assert not failures, "\n".join(failures)
