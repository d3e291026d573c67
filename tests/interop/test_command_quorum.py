"""The command `locktender` on servers that are a quorum, and on one that became a member of one by mistake."""

import json
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from commands import ran
from support.server import RealServer, free_port


@pytest.fixture
def pair() -> Iterator[list[RealServer]]:
    """Servers that nobody used before."""
    with ExitStack() as stack:
        yield [stack.enter_context(RealServer()) for _ in range(2)]


def named(servers: list[RealServer]) -> list[str]:
    return [word for server in servers for word in ("--server", server.url)]


def test_a_server_that_became_a_member_by_mistake_is_found_and_taken_out(pair: list[RealServer], name: str):
    server = pair[0]
    assert ran(server, "run", name, "--", "true").returncode == 0
    assert ran(server, "quorum", "show").returncode == 1
    mistake = ran(server, "run", "-n", *named(pair), "--prefix", "other:", name, "--", "true")
    assert mistake.returncode == 69 and "; if no lock may be held, locktender quorum init lets it vote at once" in mistake.stderr
    shown = ran(server, "quorum", "show")
    assert shown.returncode == 0
    assert [line.split()[:2] for line in shown.stdout.splitlines()] == [[server.url], ["quorum", "2"], ["votes", "from"]]
    assert 60_000 < server.command("PTTL", "{~lt}:marker") <= 120_000
    assert ran(server, "run", name, "--", "true").returncode == 0, "as long as it has never voted"
    assert "quorum" not in ran(server, "doctor").stdout

    assert ran(server, "quorum", "init", *named(pair)).returncode == 0
    assert server.command("PTTL", "{~lt}:marker") == -1
    refused = ran(server, "run", name, "--", "true")
    assert refused.returncode != 0 and "`locktender quorum remove`, which is DEL '{~lt}:marker'" in refused.stderr
    doctor = ran(server, "doctor")
    assert doctor.returncode == 1 and "locktender quorum remove" in doctor.stdout

    lines = [json.loads(line) for line in ran(server, "quorum", "show", "--json", *named(pair)).stdout.splitlines()]
    assert [line["server"] for line in lines] == [one.url for one in pair]
    assert lines[0]["marker"].startswith("n=2 max_ttl=60000 ") and lines[0]["error"] is None

    removed = ran(server, "quorum", "remove")
    assert removed.returncode == 0 and "belongs to no quorum any more; its marker was n=2 max_ttl=60000" in removed.stdout
    assert server.command("EXISTS", "{~lt}:marker") == 0
    assert ran(server, "run", name, "--", "true").returncode == 0
    assert ran(server, "quorum", "remove").returncode == 1


def test_servers_of_a_new_quorum_vote_at_once_if_an_operator_says_so(pair: list[RealServer], name: str):
    server = pair[0]
    assert ran(server, "quorum", "init").returncode == 64
    begun = ran(server, "quorum", "init", *named(pair))
    assert (begun.returncode, begun.stdout, begun.stderr) == (0, "", "locktender: they vote from now on\n")
    assert ran(server, "run", "-n", *named(pair), name, "--", "true").returncode == 0
    assert "votes   yes" in ran(server, "quorum", "show").stdout
    # Another longest ttl is another quorum.
    other = ran(server, "quorum", "init", "--max-ttl", "5m", *named(pair))
    assert other.returncode == 64 and "n=2 max_ttl=60000" in other.stderr and "max_ttl=300000" in other.stderr


def test_a_server_that_does_not_answer_is_told_beside_those_that_do(server: RealServer):
    nowhere = f"redis://127.0.0.1:{free_port()}"
    shown = ran(server, "quorum", "show", "--server", nowhere, "--server", server.url)
    assert shown.returncode == 69 and "refused" in shown.stdout and "quorum  none" in shown.stdout


def test_doctor_tells_the_rights_that_a_user_lacks_also_if_that_is_the_right_to_ask(server: RealServer):
    server.command("ACL", "SETUSER", "blind", "on", ">secret", "~*", "&*", "+@all", "-@dangerous")
    try:
        url = server.url.replace("redis://", "redis://blind:secret@")
        assert ran(server, "run", "--server", url, "blind", "--", "true").returncode == 0
        doctor = ran(server, "doctor", "--server", url)
        assert doctor.returncode == 1
        assert "NOPERM" in doctor.stdout and "rights       all that locks need" in doctor.stdout
        assert "warning" in doctor.stdout and "secret" not in doctor.stdout
    finally:
        server.command("ACL", "DELUSER", "blind")
