"""Tokens: a provider of credentials that makes a user of its own on a real server for each of its answers."""

import itertools
import threading

from locktender import Credentials

from .server import RealServer


class Tokens:
    """Gives one token after the other; `calls` counts them."""

    def __init__(self, server: RealServer, life: float | None = None) -> None:
        self.server, self.life = server, life
        self.calls = 0
        self.threads: set[str] = set()
        self._numbers = itertools.count(1)

    def __call__(self) -> Credentials:
        self.calls = number = next(self._numbers)
        self.threads.add(threading.current_thread().name)
        user, password = f"token-{number}", f"hunter2-of-{number}"
        self.server.command("ACL", "SETUSER", user, "on", f">{password}", "~*", "&*", "+@all")
        return Credentials(password, user=user, expires_in=self.life)

    def connections(self) -> dict[str, int]:
        """The connections of this library: the number of the token of each, by id."""
        found = {}
        for line in self.server.command("CLIENT", "LIST").splitlines():
            connection = dict(field.split("=", 1) for field in line.split(" "))
            if connection["name"].startswith("locktender"):
                found[connection["id"]] = int(connection["user"].removeprefix("token-"))
        return found
