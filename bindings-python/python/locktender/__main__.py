"""The command ``locktender``, also as ``python -m locktender``: its help says what it does."""

import sys

from ._native import _command


# Its return type is NoReturn, but a command that cron calls each minute need not import `typing` for that.
def main() -> None:
    """Does what the program's arguments say, and exits."""
    sys.exit(_command(sys.argv))


if __name__ == "__main__":
    main()
