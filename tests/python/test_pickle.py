"""Pickles: locks and clients pickle by their configuration; holds don't."""

import copy
import pickle

import pytest
from locktender import Client, InvalidArgumentError, configure, election, lock
from locktender.testing import ScriptedServer
from support.script import run
from support.server import RealServer


def again(value):
    return pickle.loads(pickle.dumps(value))


def name_of(user_id):
    return f"user:{user_id}"


def test_a_lock_keeps_its_name_its_options_and_its_client(server: RealServer, name):
    with Client([server.url], prefix="pickled:", ttl=70) as client, again(client.lock(name, wait=0)) as held:
        assert server.holder(f"pickled:{name}") == held.owner
        assert 68 < held.remaining() <= 70
        with pytest.raises(TimeoutError):
            again(client.lock(name, wait=0)).acquire()


def test_equal_configurations_share_a_client_for_as_long_as_it_is_open(server: RealServer, name):
    original = Client(server.url, app="shared")
    first, second = again(original), again(Client(server.url, app="shared"))
    assert first is second and first is not original
    assert again(Client(server.url, app="another")) is not first
    assert again([original, original.lock(name)])[0] is first
    original.close()
    with first.lock(name):
        pass
    first.close()
    third = again(original)
    assert third is not first
    with third, third.lock(name):
        pass


def test_a_lock_of_the_default_client_is_one_of_the_other_process(server: RealServer, name):
    program = """
        import pickle, sys
        from locktender import configure
        configure(sys.argv[1], app="other")
        with pickle.loads(bytes.fromhex(sys.argv[2])) as held:
            print(held.owner.split()[0])
    """
    configure(server.url, app="this")
    assert run(program, server.url, pickle.dumps(lock(name, ttl=5)).hex()) == "app=other\n"
    configure("memory://afterwards")


def test_an_election_keeps_its_name_its_options_and_its_client(server: RealServer, name):
    with Client(server.url, ttl=70) as client:
        assert again(client.election(name)).name == name
        with again(client.election(name, ttl=5)).campaign() as leadership:
            assert 3 < leadership.remaining() <= 5
    configure(server.url, app="this")
    other = pickle.dumps(election(f"{name}, too"))
    configure(server.url, app="another")
    with pickle.loads(other).campaign() as leadership:
        assert leadership.owner.startswith("app=another ")
    configure("memory://afterwards")


def test_the_name_of_a_decorator_pickles_if_it_is_a_template_or_a_function(server: RealServer):
    with Client(server.url) as client:
        assert again(client.lock("user:{user_id}")).name == "user:{user_id}"
        made = again(client.lock(name_of))(lambda user_id: client.lock(f"user:{user_id}").inspect() is not None)
        assert made(7)
        with pytest.raises((pickle.PicklingError, AttributeError)):
            pickle.dumps(client.lock(lambda user_id: "x"))


def test_spawned_processes_get_locks_as_arguments(server: RealServer, name, tmp_path):
    (tmp_path / "spawning.py").write_text("""
import multiprocessing, os, sys
from locktender import Client

def work(lock):
    with lock as held:
        return held.fence, os.getpid()

if __name__ == "__main__":
    with Client(sys.argv[1]) as client, multiprocessing.get_context("spawn").Pool(2) as pool:
        fences = [fence for fence, _ in pool.map(work, [client.lock(sys.argv[2], wait=60)] * 10)]
        print(len(set(fences)))
        pool.close()
        pool.join()
""")
    program = """
        import runpy, sys
        sys.argv = sys.argv[1:]
        runpy.run_path(sys.argv[0], run_name="__main__")
    """
    assert run(program, tmp_path / "spawning.py", server.url, name) == "10\n"


def test_a_named_client_and_its_locks_pickle_by_its_name(server: RealServer, name):
    """No password, no address: the other process has its own client of that name."""
    with Client(server.url, pickle_name=name, app="secret-app") as client:
        for value in (client, client.lock(name, wait=0), client.lock(name_of)):
            pickled = pickle.dumps(value)
            assert name.encode() in pickled and b"redis" not in pickled and b"secret-app" not in pickled
        assert again(client) is client
        with again(client.lock(name, wait=0)) as held:
            assert held.owner.startswith("app=secret-app ")
        pickled = pickle.dumps(client.lock(name))
        program = """
            import pickle, sys
            from locktender import Client, InvalidArgumentError, configure
            pickled = bytes.fromhex(sys.argv[3])
            try:
                pickle.loads(pickled)
            except InvalidArgumentError as error:
                print(sys.argv[2] in str(error), "configure" in str(error))
            configure(sys.argv[1], pickle_name=sys.argv[2], app="other")
            with pickle.loads(pickled) as held:
                print(held.owner.startswith("app=other "))
        """
        assert run(program, server.url, name, pickled.hex()) == "True True\nTrue\n"
    with pytest.raises(InvalidArgumentError, match="no open client named"):
        pickle.loads(pickled)
    with Client("memory://named", pickle_name=name) as client:
        assert again(client) is client, "the latest of that name"
    for wrong in ("", 7):
        with pytest.raises(InvalidArgumentError, match="name"):
            Client(server.url, pickle_name=wrong)


def test_what_would_lock_nobody_out_is_refused(name, monkeypatch):
    for servers in ("memory://a", ["memory://a", "memory://b"]):
        with Client(servers) as client, pytest.raises(TypeError, match="memory://"):
            pickle.dumps(client.lock(name))
    monkeypatch.setenv("LOCKTENDER_URL", "memory://a")
    with Client() as client, pytest.raises(TypeError, match="memory://"):
        pickle.dumps(client)
    with Client(ScriptedServer()) as client, pytest.raises(TypeError):
        pickle.dumps(client)


def test_a_hold_refuses(each_client, name):
    with each_client.lock(name) as held:
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="hand_over"):
                attempt(held)


def test_a_copy_is_the_same(each_client, name):
    lock = each_client.lock(name)
    assert copy.copy(lock) is lock and copy.deepcopy({"lock": lock})["lock"] is lock
    assert copy.deepcopy(each_client) is each_client


def test_a_list_of_servers_may_be_an_iterator(servers):
    urls = [servers().url, servers().url]
    with Client(iter(urls)) as client:
        assert [report.server for report in again(client).check_servers()] == urls
    with pytest.raises(InvalidArgumentError):
        Client(iter([7]))


def test_threads_that_pickle_the_same_client_and_lock(server: RealServer, name):
    """What pickles is Python code: another thread may run in the middle of it."""
    program = """
        import pickle, sys, threading
        from locktender import Client
        client = Client(sys.argv[1], app="pickled")
        lock = client.lock(sys.argv[2])
        sys.setswitchinterval(1e-6)

        def work():
            for _ in range(300):
                pickle.dumps(client)
                pickle.dumps(lock)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print("done")
    """
    assert run(program, server.url, name) == "done\n"


def test_a_client_that_is_pickled_while_it_is_pickled(server: RealServer):
    """The app's own class, in the middle of it, pickles the client once more."""
    program = """
        import pickle, sys
        from locktender import Client

        class App(str):
            def __reduce__(self):
                global again
                if not again:
                    again = True
                    pickle.dumps(client)
                return str, ("app",)

        again = False
        client = Client(sys.argv[1], app=App("app"))
        print(type(pickle.loads(pickle.dumps(client))).__name__, again)
    """
    assert run(program, server.url) == "Client True\n"
