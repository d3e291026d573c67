"""The command ``locktender``, also as ``python -m locktender``: its help says what it does."""

import sys
from typing import NoReturn

from ._native import _command


def main() -> NoReturn:
    """Does what the program's arguments say, and exits."""
    sys.exit(_command(sys.argv))


if __name__ == "__main__":
    main()
