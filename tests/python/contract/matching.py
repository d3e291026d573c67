"""Matching: a step's values with their variables filled in, and whether the seen values are the expected ones."""

import re
from typing import Any

NUMBERS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


class Variables:
    """``$name`` and what steps have kept."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def set(self, key: str, value: Any) -> None:
        self._values[f"${key}"] = value

    def fill(self, value: Any) -> Any:
        """The value with every variable, repeated text and special number in it replaced."""
        if isinstance(value, str):
            return self._values.get(value, NUMBERS.get(value)) or self._fill_text(value)
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        if isinstance(value, dict):
            if "repeat" in value:
                return value["repeat"] * value["times"]
            if "code_unit" in value:
                return chr(value["code_unit"])
            return {key: self.fill(item) for key, item in value.items()}
        return value

    def _fill_text(self, text: str) -> str:
        # Longer names first, so that `$name` doesn't eat the start of `$names`.
        for key in sorted(self._values, reverse=True):
            text = text.replace(key, str(self._values[key]))
        return text


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def mismatch(expected: Any, seen: Any) -> str | None:
    """Why `seen` is not what is expected, or None if it is."""
    if matches(expected, seen):
        return None
    if isinstance(expected, dict) and isinstance(seen, dict):
        for key, value in expected.items():
            if why := mismatch(value, seen.get(key)):
                return f"{key}: {why}"
    return f"expected {expected!r}, saw {seen!r}"


def matches(expected: Any, seen: Any) -> bool:
    match expected:
        case "*":
            return seen is not None
        case [low, high] if is_number(low) and is_number(high) and is_number(seen):
            return low <= seen <= high
        case list():
            return isinstance(seen, list) and len(seen) == len(expected) and all(map(matches, expected, seen))
        case {"above": bound}:
            return is_number(seen) and seen > bound
        case {"below": bound}:
            return is_number(seen) and seen < bound
        case {"has": parts}:
            return isinstance(seen, str) and all(part in seen for part in parts)
        case {"lacks": parts}:
            return isinstance(seen, str) and not any(part in seen for part in parts)
        case {"says": texts}:
            # `…` stands for anything.
            pattern = ".*".join(map(re.escape, texts["python"].split("…")))
            return isinstance(seen, str) and re.fullmatch(pattern, seen, re.DOTALL) is not None
        case {"owner_with": fields}:
            # Read by other means than the library's.
            owner = dict(field.split("=", 1) for field in seen.split(" "))
            return owner.keys() == fields.keys() and matches(fields, owner)
        case dict():
            return isinstance(seen, dict) and all(matches(value, seen.get(key)) for key, value in expected.items())
        case bool() | None:
            return seen is expected
        case _:
            return bool(seen == expected)
