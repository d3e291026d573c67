"""Test doubles: a scripted lock server, and a manual clock.

    from locktender import Client
    from locktender.testing import Clock, ScriptedServer

    server = ScriptedServer("acquire: busy owner=somebody ttl=500")  # the first acquire; then it behaves
    client = Client(server)
    assert client.lock("orders").try_acquire() is None
    with Clock() as clock, client.lock("orders") as held:
        clock.advance(3600)
        assert held.is_valid()
"""

from ._native import Clock, ScriptedServer, Seen

__all__ = ["Clock", "ScriptedServer", "Seen"]
