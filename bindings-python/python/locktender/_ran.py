"""What came of a function that runs only if its lock is free."""

from __future__ import annotations


class Ran:
    """The answer of a function decorated with ``@lock(...).try_run``.

    ``ran`` says whether it ran, ``value`` what it returned: ``None`` if it didn't run. True if it ran.
    """

    __slots__ = ("ran", "value")

    def __init__(self, ran: bool, value: Any = None) -> None:
        self.ran = ran
        self.value = value

    def __bool__(self) -> bool:
        return self.ran

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ran):
            return NotImplemented
        return (self.ran, self.value) == (other.ran, other.value)

    def __hash__(self) -> int:
        return hash((self.ran, self.value))

    def __reduce__(self) -> tuple[Any, ...]:
        return Ran, (self.ran, self.value)

    def __repr__(self) -> str:
        return f"Ran(ran={self.ran!r}, value={self.value!r})"

    # Ran[int], for annotations; its types are in the stub beside this file, because importing typing takes long.
    __class_getitem__ = classmethod(type(list[int]))
