"""The other subcommands of the command `locktender` than `run`, with real signals and servers."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from commands import PROGRAMS, RUST, begun, environment, is_alive, ran, running
from locktender import Client
from support.observe import PATIENCE, until
from support.server import RealServer, free_port
from terminal import Terminal

# It says which attempt it is, and goes on until its standard input ends.
ATTEMPT = ["sh", "-c", "echo attempt $LOCKTENDER_ATTEMPT of $LOCKTENDER_MAX_ATTEMPTS; cat"]
WAIT_FOR_TERM = "trap 'exit {}' TERM; echo begun; while :; do sleep 0.02; done"


def record(server: RealServer, name: str) -> dict[str, str]:
    words = iter(server.command("HGETALL", f"{{{name}}}:~lt:job"))
    return dict(zip(words, words))


def test_a_job_that_is_done_is_not_run_again_and_gives_its_output_in_every_language(server: RealServer, name: str, tmp_path: Path):
    runs = tmp_path / "runs"
    script = f"echo run >>{runs}; printf 'made \"2\"\\nand 3'; echo err >&2"
    for first, program in enumerate(PROGRAMS.values()):
        done = ran(server, "job", name, "--", "sh", "-c", script, program=program)
        assert (done.returncode, done.stdout, done.stderr) == (0, 'made "2"\nand 3', "" if first else "err\n")
    assert runs.read_text() == "run\n"
    with Client(server.url) as client:
        outcome = client.job(name).run(lambda attempt: None)
        assert (outcome.ran, outcome.result) == (False, 'made "2"\nand 3')
    assert 23 * 3_600_000 < server.command("PTTL", f"{{{name}}}:~lt:job") <= 24 * 3_600_000
    assert "was done before" in ran(server, "job", "-v", name, "--", "true").stderr


def test_the_result_of_a_program_that_uses_the_library_is_shown_as_json(server: RealServer, name: str):
    with Client(server.url) as client:
        client.job(name).run(lambda attempt: {"sent": 3})
        client.job(f"{name}:none").run(lambda attempt: None)
    assert json.loads(ran(server, "job", name, "--", "false").stdout) == {"sent": 3}
    done = ran(server, "job", f"{name}:none", "--", "false")
    assert (done.returncode, done.stdout) == (0, "")


def test_a_failure_has_the_end_of_what_the_program_said(server: RealServer, name: str, program: list[str]):
    script = "i=0; while [ $i -lt 2000 ]; do echo line é $i >&2; i=$((i + 1)); done; exit 3"
    done = ran(server, "job", name, "--", "sh", "-c", script, program=program)
    lines = [f"line é {i}\n" for i in range(2_000)]
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "".join(lines))
    error = record(server, name)["error"]
    assert error.startswith("exit code 3: line é 1") and error.endswith("line é 1998\nline é 1999")
    assert 980 < len(error.encode()) <= 1_024
    # Bytes are passed on as they are, whoever reads them.
    raw = subprocess.run([*program, "job", f"{name}:raw", "--", "sh", "-c", r"printf 'a\377' >&2"], env=environment(server), capture_output=True, timeout=PATIENCE)
    assert (raw.returncode, raw.stdout, raw.stderr) == (0, b"", b"a\xff")


def test_on_a_terminal_the_standard_error_stays_one(server: RealServer, name: str):
    with Terminal(*RUST, "job", name, "--", "sh", "-c", "[ -t 2 ] && [ ! -t 1 ] && echo both >&2", env=environment(server)) as terminal:
        terminal.shows("both")
        assert terminal.ended() == 0


def test_all_output_is_passed_on_and_its_beginning_is_kept(server: RealServer, name: str):
    done = ran(server, "job", name, "--", "sh", "-c", "i=0; while [ $i -lt 20000 ]; do echo line é $i; i=$((i + 1)); done")
    lines = [f"line é {i}\n" for i in range(20_000)]
    assert done.returncode == 0 and done.stdout == "".join(lines)
    again = ran(server, "job", name, "--", "false").stdout
    assert done.stdout.startswith(again) and len(again) > 50_000
    assert 65_530 < len(record(server, name)["result"].encode()) <= 65_536
    assert f"first {len(again.encode())} bytes" in done.stderr


def test_bytes_that_are_no_text_are_passed_on_and_replaced_in_what_is_kept(server: RealServer, name: str):
    def bytes_of(*command: str) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run([*RUST, "job", name, "--", *command], env=environment(server), capture_output=True, timeout=PATIENCE)

    done = bytes_of("printf", r"a\377\000b")
    assert (done.stdout, done.returncode) == (b"a\xff\0b", 0) and b"UTF-8" in done.stderr
    assert bytes_of("false").stdout == "a\ufffd\0b".encode()


def test_output_comes_while_the_command_runs_and_nobody_waits_for_what_it_leaves_behind(server: RealServer, name: str):
    with running(server, "job", name, "--", "sh", "-c", "printf begun; read line; (sleep 60 2>&- & echo $!); echo $line") as process:
        assert process.stdout is not None and process.stdout.read(5) == "begun"
        out, _ = process.communicate("end\n", timeout=PATIENCE)
    left, last = out.split()
    os.kill(int(left), signal.SIGKILL)
    assert (last, process.returncode) == ("end", 0)


def test_an_output_that_nobody_reads_is_kept_and_one_that_can_t_be_written_is_told(server: RealServer, name: str):
    with running(server, "job", name, "--", "sh", "-c", "echo begun; read line; seq 3; seq 3") as process:
        assert begun(process) == "begun"
        process.stdout.close()  # type: ignore[union-attr]
        process.stdout = None
        _, err = process.communicate("\n", timeout=PATIENCE)
        assert (process.returncode, err) == (0, "")
    assert ran(server, "job", name, "--", "false").stdout == "begun\n1\n2\n3\n1\n2\n3\n"
    for words in (["job", name, "--", "false"], ["job", f"{name}:new", "--", "echo", "done"]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run([*RUST, *words], env=environment(server), stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE)
        assert done.returncode == 74 and b"can't write" in done.stderr


def test_a_failure_counts_and_after_the_last_one_the_job_is_dead(server: RealServer, name: str):
    words = ["job", "--max-attempts", "3", name]
    for number, (script, code, error) in enumerate((("exit 3", 3, "exit code 3"), ("kill -9 $$", 137, "signal 9")), 1):
        done = ran(server, *words, "--", "sh", "-c", f"echo $LOCKTENDER_ATTEMPT; {script}")
        assert (done.stdout, done.stderr, done.returncode) == (f"{number}\n", "", code)
        assert (record(server, name)["error"], record(server, name)["attempts"]) == (error, str(number))
    assert ran(server, *words, "--", "false").returncode == 1
    done = ran(server, *words, "--", "echo", "never")
    assert (done.returncode, done.stdout) == (80, "") and "exit code 1" in done.stderr and "3 attempts" in done.stderr


def test_the_next_attempt_waits_for_the_retry_delay(server: RealServer, name: str):
    assert ran(server, "job", "--retry-delay", "1h", name, "--", "false").returncode == 1
    done = ran(server, "job", "-n", name, "--", "echo", "never")
    assert (done.returncode, done.stdout) == (75, "") and done.stderr.startswith("locktender: job")


def test_a_command_that_can_not_run_costs_no_attempt(server: RealServer, name: str):
    for _ in range(2):
        assert ran(server, "job", "--max-attempts", "1", name, "--", "no-such-command").returncode == 127
    assert ran(server, "job", "--max-attempts", "1", name, "--", "echo", "ran").stdout == "ran\n"


def test_who_finds_the_job_running_waits_or_says_so(server: RealServer, name: str, program: list[str]):
    with running(server, "job", name, "--", *ATTEMPT) as first:
        assert begun(first) == "attempt 1 of 3"
        busy = ran(server, "job", "-n", name, "--", "true", program=program)
        assert busy.returncode == 75 and name in busy.stderr
        with running(server, "job", name, "--", "echo", "never", program=program) as second:
            until(lambda: server.line(name), PATIENCE)
            out, _ = first.communicate("made", timeout=PATIENCE)
            assert out == "made"
            assert second.communicate(timeout=PATIENCE) == ("attempt 1 of 3\nmade", "")
            assert second.returncode == 0


def test_many_at_once_run_it_once(server: RealServer, name: str, tmp_path: Path):
    runs = tmp_path / "runs"
    script = f"echo run >>{runs}; cat {runs}"
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda _: ran(server, "job", name, "--", "sh", "-c", script), range(8)))
    assert {(each.returncode, each.stdout, each.stderr) for each in done} == {(0, "run\n", "")}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing ends a child with its parent")
def test_the_next_one_takes_over_from_a_killed_one(server: RealServer, name: str):
    with running(server, "job", "--ttl", "0.5", name, "--", *ATTEMPT) as first:
        assert begun(first) == "attempt 1 of 3"
        with running(server, "job", "--ttl", "0.5", name, "--", *ATTEMPT) as second:
            until(lambda: server.line(name), PATIENCE)
            first.kill()
            assert begun(second) == "attempt 2 of 3"
            second.communicate(timeout=PATIENCE)
            assert second.returncode == 0


def test_an_attempt_that_a_signal_ends_is_given_back(server: RealServer, name: str, program: list[str]):
    for script, code in (("echo begun; exec sleep 60", -15), (WAIT_FOR_TERM.format(5), 5)):
        with running(server, "job", name, "--", "sh", "-c", script, program=program, start_new_session=True) as process:
            assert begun(process) == "begun"
            process.terminate()
            assert process.wait(PATIENCE) == code
        assert record(server, name).get("attempts", "0") == "0" and server.command("EXISTS", name) == 0
    with running(server, "job", name, "--", "sh", "-c", "echo $$; exec sleep 60", program=program) as process:
        # As Ctrl-C in a terminal.
        os.kill(int(begun(process)), signal.SIGINT)
        assert process.wait(PATIENCE) == -2
    assert record(server, name).get("attempts", "0") == "0"
    with running(server, "job", name, "--", "sh", "-c", WAIT_FOR_TERM.format(0), program=program) as process:
        assert begun(process) == "begun"
        process.terminate()
        assert process.wait(PATIENCE) == 0
    assert record(server, name)["state"] == "done"


def test_an_attempt_whose_lease_is_lost_is_ended_and_counts(server: RealServer, name: str):
    with running(server, "job", "--ttl", "1", name, "--", *ATTEMPT) as process:
        assert begun(process) == "attempt 1 of 3"
        server.command("DEL", name)
        assert process.wait(PATIENCE) == 79
        assert process.stderr is not None and "was lost" in process.stderr.read()
    done = ran(server, "job", "--ttl", "1", "--max-hold", "0.5", name, "--", "sh", "-c", "echo $LOCKTENDER_ATTEMPT; exec sleep 60")
    assert (done.returncode, done.stdout) == (79, "2\n") and "500ms" in done.stderr
    assert (record(server, name)["attempts"], record(server, name)["state"]) == ("2", "retrying")


def test_each_mistake_has_its_code(server: RealServer, name: str):
    nowhere = f"redis://127.0.0.1:{free_port()}"
    for words, code, said in (
        (["job", "--max-attempts", "0", name, "--", "true"], 64, "max-attempts"),
        (["job", "--server", nowhere, "--server", server.url, name, "--", "true"], 64, "one server"),
        (["job", "-n", "--server", nowhere, name, "--", "true"], 69, "Connection refused"),
        (["cron-job", name, "--", "true"], 64, "--at <TIME>|--every <DURATION>"),
        (["cron-job", "--at", "today", name, "--", "true"], 64, "2026-11-21T02:00:00+01:00"),
        (["cron-job", "--at", "@12", name, "--", "true"], 64, "2000"),
        (["cron-job", "--at", "@1795222800000", name, "--", "true"], 64, "it counts the seconds since 1970"),
        (["cron-job", "--at", f"@{int(time.time()) + 3600}", name, "--", "true"], 64, "ahead of the server"),
        (["cron-job", "--at", "@1795222800", "--every", "1h", name, "--", "true"], 64, "cannot be used with"),
        (["cron-job", "-n", "--every", "1h", "--server", nowhere, name, "--", "true"], 69, "Connection refused"),
        (["lead", "-n", name, "--", "true"], 64, "-n"),
        (["lead", "--kill-after", "4", "--ttl", "5", name, "--", "true"], 64, "--kill-after"),
        (["lead", name, "--", "no-such-command"], 127, "no-such-command"),
    ):
        done = ran(server, *words)
        assert (done.returncode, done.stdout) == (code, "") and said in done.stderr, (words, done)
    assert server.command("EXISTS", name, f"{{{name}}}:~lt:job") == 0


def test_a_cron_job_runs_on_one_machine_for_each_scheduled_time_and_is_silent_on_the_others(server: RealServer, name: str):
    now = int(time.time()) // 60 * 60
    for at in (now - 60, now):
        once = ["cron-job", "--at", f"@{at}", name, "--", "sh", "-c", "echo $LOCKTENDER_SCHEDULED_TIME"]
        with ThreadPoolExecutor() as pool:
            done = list(pool.map(lambda program: ran(server, *once, program=program), PROGRAMS.values()))
        assert {(each.returncode, each.stderr) for each in done} == {(0, "")}
        assert sorted(each.stdout for each in done) == ["", f"{at}\n"]
    for key, at, why in ((name, now, "was done"), (name, now - 60, "later scheduled time"), (f"{name}:new", now - 90_000, "too late")):
        over = ran(server, "cron-job", "-v", "-E", "9", "--at", f"@{at}", key, "--", "echo", "never")
        assert (over.returncode, over.stdout) == (9, "") and why in over.stderr


def test_a_cron_job_without_a_time_rounds_to_every(server: RealServer, name: str):
    words = ["cron-job", "--every", "100d", "--max-lateness", "366d", name, "--", "sh", "-c", "echo $((LOCKTENDER_SCHEDULED_TIME % 8640000))"]
    assert [ran(server, *words).stdout for _ in range(2)] == ["0\n", ""]


def test_a_cron_job_beside_a_run_skips_or_waits_and_is_a_backup_on_demand(server: RealServer, name: str):
    now = int(time.time())
    once = ["cron-job", "--ttl", "0.5", "--max-attempts", "2"]
    with running(server, *once, "--at", f"@{now}", name, "--", *ATTEMPT) as first:
        assert begun(first) == "attempt 1 of 2"
        done = ran(server, "cron-job", "-E", "4", "--at", f"@{now}", "-n", name, "--", "echo", "never")
        assert (done.returncode, done.stdout, done.stderr) == (4, "", "")
        assert ran(server, "cron-job", "--at", f"@{now + 1}", name, "--", "echo", "never").stdout == ""
        with running(server, *once, "--at", f"@{now}", name, "--", "sh", "-c", "exit 6") as backup:
            until(lambda: server.line(name), PATIENCE)
            first.kill()
            assert backup.wait(PATIENCE) == 6
    done = ran(server, *once, "--at", f"@{now}", name, "--", "echo", "never")
    assert (done.returncode, done.stdout) == (80, "") and "exit code 6" in done.stderr


def test_a_leader_hands_over_by_a_signal_and_by_its_death(server: RealServer, name: str, program: list[str]):
    lead = ["lead", "--ttl", "0.5", name, "--", "sh", "-c", f"echo $LOCKTENDER_TERM; {WAIT_FOR_TERM.format(3)}"]
    terms = []
    with ExitStack() as stack:
        candidates = [stack.enter_context(running(server, *lead, program=program, start_new_session=True))]
        terms.append(int(begun(candidates[0])))
        for _ in range(2):
            candidates.append(stack.enter_context(running(server, *lead, program=program, start_new_session=True)))
            until(lambda: server.line(name), PATIENCE)
            leader = candidates.pop(0)
            leader.send_signal(signal.SIGKILL if len(terms) == 2 else signal.SIGTERM)
            assert leader.wait(PATIENCE) == (-9 if len(terms) == 2 else 3)
            terms.append(int(begun(candidates[0])))
    assert terms == sorted(set(terms))


def test_a_leader_whose_command_ends_resigns(server: RealServer, name: str):
    done = ran(server, "lead", name, "--", "sh", "-c", "echo led; exit 4")
    assert (done.returncode, done.stdout, done.stderr) == (4, "led\n", "")
    assert server.command("EXISTS", name) == 0


def test_a_leadership_that_is_lost_ends_the_command_and_the_next_campaign_begins(server: RealServer, name: str):
    with running(server, "lead", "--ttl", "1", name, "--", "sh", "-c", "echo $$; echo $LOCKTENDER_TERM; exec sleep 60") as process:
        pid, term = int(begun(process)), int(begun(process))
        server.command("SET", name, "another", "PX", 300)
        second = int(begun(process))
        assert not is_alive(pid) and is_alive(second) and int(begun(process)) > term
        process.terminate()
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == -15 and err.count("was lost") == 1


def test_a_signal_while_the_lost_command_ends_is_for_the_leader_too(server: RealServer, name: str):
    script = "trap 'echo told' TERM; echo begun; while :; do sleep 0.02; done"
    with running(server, "lead", "--ttl", "2", "--kill-after", "0.5", name, "--", "sh", "-c", script) as process:
        assert begun(process) == "begun"
        server.command("DEL", name)
        assert begun(process) == "told"
        process.terminate()
        assert process.wait(PATIENCE) == -15


def test_a_campaign_goes_on_while_no_server_answers(name: str):
    with RealServer() as server:
        server.kill()
        with running(server, "lead", name, "--", "echo", "leads") as process:
            assert process.stderr is not None and "the campaign continues" in process.stderr.readline()
            server.restart()
            out, err = process.communicate(timeout=PATIENCE)
            assert (out, err, process.returncode) == ("leads\n", "", 0)


def test_a_shell_completes_the_arguments_and_man_shows_them(tmp_path: Path):
    def written(*words: str) -> str:
        return subprocess.run([*RUST, *words], capture_output=True, text=True, check=True, timeout=PATIENCE).stdout

    for shell in ("bash", "zsh", "fish"):
        assert "retry-delay" in written("completions", shell)
    script = written("completions", "bash") + "COMP_WORDS=(locktender job --ma) COMP_CWORD=2; _locktender locktender --ma job; echo ${COMPREPLY[@]}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert done.stdout == "--max-attempts --max-hold\n"
    # Behind `--` it is the program's line.
    lines = {
        "bash": "COMP_WORDS=(locktender run x -- trut) COMP_CWORD=4; _locktender_or_command locktender trut --; echo ${COMPREPLY[@]}",
        "fish": "complete -C 'locktender run x -- trut'",
    }
    for shell, line in lines.items():
        if not shutil.which(shell):
            continue
        words = ["bash", "--norc"] if shell == "bash" else ["fish", "--no-config"]
        tool = tmp_path / "truthful"
        tool.write_text("#!/bin/sh\n")
        tool.chmod(0o755)
        env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
        done = subprocess.run([*words, "-c", f"{written('completions', shell)}\n{line}"], env=env, capture_output=True, text=True, check=True, timeout=PATIENCE)
        assert done.stdout.split()[0] == "truthful", (shell, done)
    assert "locktender\\-cron\\-job(1)" in written("man")
    page = written("man", "cron-job")
    assert page.startswith(".ie") and "\\-\\-on\\-overlap" in page and "no attempt is left" in page
    done = subprocess.run([*RUST, "man", "twice"], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 64 and "possible values: run, job" in done.stderr
    assert '.SH "EXIT STATUS"' in page and '.SH "EXAMPLES"' in page and ".SH EXTRA" not in page
    assert "--on-overlap" in written("help", "cron-job")
    with open("/dev/full", "w") as full:
        for words in (["man", "run"], ["completions", "bash"]):
            done = subprocess.run([*RUST, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
            assert done.returncode == 74 and "can't write the output" in done.stderr
