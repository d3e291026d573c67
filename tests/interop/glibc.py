"""The glibc check: it refuses binaries that need a newer glibc than promised. `python3 tests/interop/glibc.py 2.17 FILE…`."""

import re
import sys
from pathlib import Path


def newest(binary: bytes) -> tuple[int, ...]:
    """The newest version of glibc whose symbols a binary names."""
    found = re.findall(rb"(?<=\0)GLIBC_(\d+(?:\.\d+)+)(?=\0)", binary)
    return max((tuple(int(part) for part in version.split(b".")) for version in found), default=(0,))


def main(promised: str, *files: str) -> int:
    limit = tuple(int(part) for part in promised.split("."))
    bad = [(file, version) for file in files if (version := newest(Path(file).read_bytes())) > limit]
    for file, version in bad:
        print(f"{file} needs glibc {'.'.join(map(str, version))}, but {promised} is promised", file=sys.stderr)
    return 1 if bad or not files else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
