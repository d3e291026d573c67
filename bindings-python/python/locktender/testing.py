"""A lock server for your own tests, whose answers you say in advance.

    from locktender import Client
    from locktender.testing import ScriptedServer

    server = ScriptedServer("acquire: busy owner=somebody ttl=500")  # the first acquire; then it behaves
    client = Client(server)
    assert client.lock("orders").try_acquire() is None
    assert client.lock("orders").try_acquire() is not None
"""

from ._native import ScriptedServer, Seen

__all__ = ["ScriptedServer", "Seen"]
