"""Cluster: some servers that share the slots of a cluster, made by plain commands."""

from collections.abc import Callable
from itertools import combinations
from typing import Any, NamedTuple

import redis

from .observe import PATIENCE, until
from .server import BUS, RealServer

SLOTS = 16_384

# A few small keys fit into one command.
AT_A_TIME = 500


class Served(NamedTuple):
    """A range of slots, and the nodes that have it: the primary first."""

    first: int
    last: int
    ids: list[str]


class Cluster:
    """The nodes: the first primaries, then the replicas of the first one, of the second one, …

    servers: starts a server that ends with the test
    primaries, replicas: how many have slots, and how many replicas each of these has
    full_coverage: a slot that nobody serves stops the whole cluster, as it does by default in production
    version, password, tls, config: of each node. With TLS, clients are told the port that speaks it, and replicas can't follow.
    """

    def __init__(
        self,
        servers: Callable[..., RealServer],
        primaries: int = 3,
        replicas: int = 0,
        *,
        full_coverage: bool = False,
        password: str | None = None,
        config: tuple[str, ...] = (),
        **options: Any,
    ) -> None:
        self.password = password
        lines = ["cluster-node-timeout 1500", "repl-diskless-sync-delay 0", *config]
        lines += [f"cluster-require-full-coverage {'yes' if full_coverage else 'no'}"]
        lines += [f"masterauth {password}"] if password else []
        options |= {"password": password, "config": tuple(lines), "cluster": True}
        self.nodes = [servers(**options) for _ in range(primaries * (1 + replicas))]
        self._ids = {node.command("CLUSTER", "MYID"): node for node in self.nodes}
        self._form(primaries, replicas)

    def _form(self, primaries: int, replicas: int) -> None:
        for index, node in enumerate(self.nodes):
            # Else equal ones collide, and nodes take a while to settle that.
            node.command("CLUSTER", "SET-CONFIG-EPOCH", index + 1)
            if node.port != node.own_port:
                node.command("CONFIG", "SET", "cluster-announce-port", node.port)
        # Each meets each: they needn't wait for what others tell of them.
        for node, other in combinations(self.nodes, 2):
            node.command("CLUSTER", "MEET", "127.0.0.1", other.own_port, other.own_port + BUS)
        first = [index * SLOTS // primaries for index in range(primaries + 1)]
        for index, node in enumerate(self.nodes[:primaries]):
            node.command("CLUSTER", "ADDSLOTS", *range(first[index], first[index + 1]))
        until(lambda: all(_info(node, "cluster_known_nodes") == str(len(self.nodes)) for node in self.nodes), PATIENCE)
        for index, replica in enumerate(self.nodes[primaries:]):
            primary = self._id(self.nodes[index // replicas])
            # It must know the other as a primary with slots before.
            until(lambda: _try(replica, "CLUSTER", "REPLICATE", primary) == "OK", PATIENCE)
        for replica in self.nodes[primaries:]:
            until(lambda: "master_link_status:up" in replica.command("INFO", "replication"), PATIENCE)
        until(lambda: all(self._is_ready(node, primaries) for node in self.nodes), PATIENCE)

    def _is_ready(self, node: RealServer, primaries: int) -> bool:
        knows_all = sum(len(part.ids) for part in _served(node)) == len(self.nodes)
        wanted = {"cluster_state": "ok", "cluster_slots_ok": str(SLOTS), "cluster_size": str(primaries)}
        return knows_all and all(_info(node, field) == value for field, value in wanted.items())

    @property
    def hosts(self) -> list[tuple[str, int]]:
        return [("127.0.0.1", node.port) for node in self.nodes]

    @property
    def url(self) -> str:
        """The URL with the ports of all nodes, and the password if they need one."""
        first = self.nodes[0]
        login = f":{self.password}@" if self.password else ""
        scheme = "redis+cluster" if first.port == first.own_port else "rediss+cluster"
        return f"{scheme}://{login}{','.join(f'{host}:{port}' for host, port in self.hosts)}"

    def slot(self, key: str) -> int:
        slot: int = self._running()[0].command("CLUSTER", "KEYSLOT", key)
        return slot

    def primary(self, slot: int) -> RealServer:
        """The node that serves a slot, as the first running node knows it."""
        node = self._primary_for(self._running()[0], slot)
        assert node, "nobody serves the slot"
        return node

    def at(self, key: str) -> RealServer:
        """The node that serves a key."""
        return self.primary(self.slot(key))

    def command(self, key: str, *words: str | int) -> Any:
        """Asks the node that serves the key."""
        return self.at(key).command(*words)

    def fill(self, tag: str, count: int) -> None:
        """Writes small keys with this tag."""
        node = self.at(tag)
        for start in range(0, count, AT_A_TIME):
            numbers = range(start, min(start + AT_A_TIME, count))
            node.command("MSET", *(word for number in numbers for word in (f"{{{tag}}}:filler:{number}", "x")))

    def begin_move(self, slot: int, to: RealServer) -> None:
        """From now on the slot is MIGRATING where it is, and IMPORTING at the other node. No key moves yet."""
        source = self.primary(slot)
        to.command("CLUSTER", "SETSLOT", slot, "IMPORTING", self._id(source))
        source.command("CLUSTER", "SETSLOT", slot, "MIGRATING", self._id(to))

    def move_keys(self, slot: int, to: RealServer, limit: int = AT_A_TIME) -> int:
        """Moves at most so many keys of a slot whose move has begun; how many it moved."""
        source = self.primary(slot)
        keys: list[str] = source.command("CLUSTER", "GETKEYSINSLOT", slot, limit)
        login = ["AUTH", self.password] if self.password else []
        if keys:
            source.command("MIGRATE", "127.0.0.1", to.own_port, "", 0, int(PATIENCE * 1e3), *login, "KEYS", *keys)
        return len(keys)

    def finish_move(self, slot: int, to: RealServer) -> None:
        """Ends the move of a slot whose keys have all moved: the other node serves it from now on, and all know."""
        source = self.primary(slot)
        # The target first: if the source went first, both could send clients to each other.
        for node in [to, source, *(node for node in self._running() if node not in (to, source))]:
            try:
                node.command("CLUSTER", "SETSLOT", slot, "NODE", self._id(to))
            except redis.ResponseError as error:
                # A replica learns it from its primary.
                if "replica" not in str(error):
                    raise
        self._all_name(slot, to)

    def move_slot(self, slot: int, to: RealServer) -> None:
        """Moves a slot with all its keys, key by key."""
        self.begin_move(slot, to)
        while self.move_keys(slot, to):
            pass
        self.finish_move(slot, to)

    @property
    def moves_at_once(self) -> bool:
        """Whether the servers can move a slot at once (Valkey 9)."""
        binary = self.nodes[0].binary
        return binary.kind == "valkey" and int(binary.version.split(".")[0]) >= 9

    def move_at_once(self, slot: int, to: RealServer) -> None:
        """Moves a slot with all its keys at once, as Valkey 9 does: each key is served without a gap."""
        self.primary(slot).command("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", self._id(to))
        self._all_name(slot, to)

    def fail_over(self, primary: RealServer) -> RealServer:
        """Kills a primary, and waits until all nodes that run name its replica, which is returned."""
        slot = next(part.first for part in _served(primary) if part.ids[0] == self._id(primary))
        primary.kill()

        def agreed() -> bool:
            named = {self._primary_for(node, slot) for node in self._running()}
            return len(named) == 1 and not named & {primary, None} and all(_info(node, "cluster_state") == "ok" for node in self._running())

        until(agreed, PATIENCE)
        return self.primary(slot)

    def _running(self) -> list[RealServer]:
        return [node for node in self.nodes if node.is_running]

    def _id(self, node: RealServer) -> str:
        return next(key for key, known in self._ids.items() if known is node)

    def _primary_for(self, node: RealServer, slot: int) -> RealServer | None:
        return next((self._ids[part.ids[0]] for part in _served(node) if part.first <= slot <= part.last), None)

    def _all_name(self, slot: int, to: RealServer) -> None:
        until(lambda: all(self._primary_for(node, slot) is to for node in self._running()), PATIENCE)


def _served(node: RealServer) -> list[Served]:
    return [Served(first, last, [fields[2] for fields in nodes]) for first, last, *nodes in node.command("CLUSTER", "SLOTS")]


def _info(node: RealServer, field: str) -> str | None:
    lines = (line.partition(":") for line in node.command("CLUSTER", "INFO").splitlines())
    return next((value for name, _, value in lines if name == field), None)


def _try(node: RealServer, *words: str) -> Any:
    try:
        return node.command(*words)
    except redis.ResponseError:
        return None
