"""How a step is played in Python: its options, and a coroutine without a loop."""

import math
from typing import Any


def options(wanted: dict[str, Any]) -> dict[str, Any]:
    """Options as Python spells them: seconds, and math.inf for no end."""

    def convert(value: Any) -> Any:
        if value == "forever":
            return math.inf
        return value / 1e3 if isinstance(value, (int, float)) and not isinstance(value, bool) else value

    spelled = {key.removesuffix("_ms"): convert(value) if key.endswith("_ms") else value for key, value in wanted.items()}
    spelled.pop("name", None)
    return spelled


def driven(coroutine: Any) -> Any:
    """The result of a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it suspends")
