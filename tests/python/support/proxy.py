"""Proxy: a network between client and server that fails on command."""

from types import TracebackType

from .checkout import prepared
from .program import Program


class Proxy:
    """A TCP proxy on 127.0.0.1 in front of one port, in a process of its own.

    Everything can be changed while connections are open. tests/rust/src/proxy.rs says exactly what each method does.
    """

    def __init__(self, upstream: int) -> None:
        self._program = Program(prepared("bin/locktender-proxy"), upstream)
        self.port = self._program.number
        self.url = f"redis://127.0.0.1:{self.port}"

    def latency(self, to_server: float = 0.0, to_client: float = 0.0) -> None:
        """Delays what arrives from now on, in seconds; it keeps its order and rate."""
        self._program.ask("latency", to_server, to_client)

    def cut(self) -> None:
        """Closes all connections there are; new ones are accepted."""
        self._program.ask("cut")

    def redirect(self, upstream: int) -> None:
        """Passes new connections to another port from now on, and cuts the others: a failover."""
        self._program.ask("redirect", upstream)

    def refuse(self) -> None:
        """Refuses new connections; those that are open stay."""
        self._program.ask("refuse")

    def accept(self) -> None:
        """Accepts new connections again."""
        self._program.ask("accept")

    def black_hole(self) -> None:
        """Passes nothing any more: connections stay open, new ones are accepted, and all are silent."""
        self._program.ask("black_hole")

    def restore(self) -> None:
        """Ends the black hole; what was held back arrives now."""
        self._program.ask("restore")

    def hold_answers(self) -> None:
        """Holds back what the server says from now on; it gets every request."""
        self._program.ask("hold_answers")

    def let_answers_go(self) -> None:
        """Lets the answers go that are held; they arrive now."""
        self._program.ask("let_answers_go")

    def cut_before_apply(self, requests: int = 1, needle: str = "") -> None:
        """The next requests that contain the needle, in any case, are not passed on, their connections closed."""
        self._program.ask("cut_before_apply", requests, needle)

    def cut_after_apply(self, requests: int = 1, needle: str = "") -> None:
        """The same, but the server has answered: the client gets no byte of it."""
        self._program.ask("cut_after_apply", requests, needle)

    def silence_after_apply(self, requests: int = 1, needle: str = "") -> None:
        """The same, but the connection stays open without a byte to the client any more."""
        self._program.ask("silence_after_apply", requests, needle)

    def faults_left(self) -> int:
        """How many of the faults ordered last are still to come."""
        return int(self._program.ask("faults_left"))

    def connections(self) -> int:
        """How many connections were ever accepted."""
        return int(self._program.ask("connections"))

    def open_connections(self) -> int:
        """How many connections are open."""
        return int(self._program.ask("open_connections"))

    def client_bytes(self) -> int:
        """How many bytes the clients have sent."""
        return int(self._program.ask("client_bytes"))

    def client_reads(self) -> int:
        """How many pieces they came in: about the number of the clients' writes."""
        return int(self._program.ask("client_reads"))

    def close(self) -> None:
        self._program.close()

    def __enter__(self) -> "Proxy":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
