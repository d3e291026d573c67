"""The command's help, as its users read it."""

import re
import subprocess

from support.checkout import prepared


def help_texts() -> dict[str, str]:
    """The help of each subcommand, and as that of no command the whole one's."""

    def help_of(*command: str) -> str:
        words = [prepared("bin/locktender"), *command, "--help"]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout

    whole = help_of()
    commands = re.findall(r"^  ([a-z-]+) ", whole.split("Commands:", 1)[1].split("Options:", 1)[0], re.MULTILINE)
    assert len(commands) > 10
    return {"": whole} | {command: help_of(command) for command in commands if command != "help"}
