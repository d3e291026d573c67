"""What came of a function that runs only if its lock is free."""

from __future__ import annotations


class TryOutcome:
    """The answer of a function decorated with ``@lock(...).try_run``.

    ``ran`` says whether it ran, ``result`` what it returned: ``None`` if it didn't run. True if it ran.
    """

    __slots__ = ("ran", "result")

    def __init__(self, ran: bool, result: Any = None) -> None:
        self.ran = ran
        self.result = result

    def __bool__(self) -> bool:
        return self.ran

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TryOutcome):
            return NotImplemented
        return (self.ran, self.result) == (other.ran, other.result)

    def __hash__(self) -> int:
        return hash((self.ran, self.result))

    def __reduce__(self) -> tuple[Any, ...]:
        return TryOutcome, (self.ran, self.result)

    def __repr__(self) -> str:
        return f"TryOutcome(ran={self.ran!r}, result={self.result!r})"

    # TryOutcome[int], for annotations; its types are in the stub next to this file, because importing typing takes long.
    __class_getitem__ = classmethod(type(list[int]))
