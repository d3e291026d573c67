"""The applications of shells and Kubernetes, and the one in Rust."""

import json
import os
import subprocess
import sys
import time
from typing import Any

from place import ROOT, Place, Program, free_port, until
from plays_python import web_service, without_redis

sys.path.insert(0, str(ROOT / "tests"))
import checkout  # noqa: E402

# A version of the API whose schemas the package has. The label of a Job is there since 1.27, CronJobs of batch/v1 since 1.21.
KUBERNETES = "1.32"


def manifest(place: Place, recipe: str) -> Any:
    """A manifest of the page, as JSON, after Kubernetes' own schema has accepted it."""
    name = place.write(recipe, f"{recipe}.yaml")
    check = "import json, sys, yaml, kubernetes_validate as k; d = yaml.safe_load(open(sys.argv[1])); k.validate(d, sys.argv[2], strict=True); print(json.dumps(d))"
    return json.loads(place.python("-W", "ignore", "-c", check, name, KUBERNETES).splitlines()[-1])


def cronjob(place: Place) -> None:
    said = manifest(place, "cronjob")
    (container,) = said["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    (*shell, line) = container["command"]
    runs = place.directory / "runs"
    tidy = place.directory / "tidy"
    tidy.write_text(f'#!/bin/sh\necho "$LOCKTENDER_SCHEDULED_TIME" >>{runs}\nsleep 0.3\n')
    tidy.chmod(0o755)
    command = (*shell, line.replace("/usr/local/bin/tidy", str(tidy)))
    assert command[-1] != line

    minutes = int(time.time()) // 60 - 30
    for each in (minutes, minutes + 1):
        pods = [place.start(*command, JOB=f"tidy-{each}") for _ in range(3)]
        assert [pod.process.wait(30) for pod in pods] == [0, 0, 0]
    place.run(*command, JOB=f"tidy-{minutes}")
    assert runs.read_text().split() == [str(minutes * 60), str((minutes + 1) * 60)]
    place.run(*command, JOB="tidy-by-hand", code=64)

    place.write("program", "program.py")
    place.run("locktender", "reset", "nightly")
    first, second = (place.python("program.py", JOB=f"tidy-{minutes}") for _ in range(2))
    assert first.endswith("True None {'tidied': 3}\n") and second == "False done {'tidied': 3}\n"
    assert '"scheduled_time"' in place.run("locktender", "show", "--json", "nightly") and "nightly" in place.run("locktender", "ls", "--jobs")


def leader(place: Place) -> None:
    said = manifest(place, "deployment")
    program = place.write("program", "scheduler.py")
    (container,) = said["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["python", program]
    pods = [place.start(*container["command"]) for _ in range(said["spec"]["replicas"])]

    def leads(*candidates: Program) -> Program:
        found = until(lambda: [pod for pod in candidates if "leads in term" in pod.output], "a pod leads")
        assert len(found) == 1
        return found[0]

    first = leads(*pods)
    began = time.monotonic()
    assert first.terminate() == 0
    others = [pod for pod in pods if pod is not first]
    second = leads(*others)
    assert time.monotonic() - began < 3
    assert not any("Traceback" in pod.output for pod in pods)

    # A term that an operator ends: `check()` raises, and the process campaigns again.
    place.run("locktender", "break", "--yes", "scheduler")
    (third,) = (pod for pod in others if pod is not second)
    until(lambda: "leads" in third.output or second.output.count("leads") == 2, "somebody leads again")
    assert second.process.poll() is None and third.process.poll() is None
    waits = third if "leads" not in third.output else second
    assert (waits.terminate(), second.terminate() if waits is third else third.terminate()) == (0, 0)
    assert place.holder("scheduler") is None

    killed, heir = place.start("python", program), None
    until(lambda: "leads" in killed.output, "it leads")
    heir = place.start("python", program)
    killed.kill()
    until(lambda: "leads" in heir.output, "another one leads")


def axum(place: Place) -> None:
    """Built as the example of axum is, with its lock file: another name keeps the two apart in cargo's directory."""
    example, target = ROOT / "examples/rust/axum_orders", checkout.target_directory()
    (place.directory / "src").mkdir()
    place.write("service", "src/main.rs")
    for name in ("Cargo.toml", "Cargo.lock"):
        text = (example / name).read_text().replace('"axum_orders"', '"axum_page"').replace('"../../../core"', f'"{ROOT / "core"}"')
        (place.directory / name).write_text(text)
    subprocess.run(["cargo", "build", "--locked", "--quiet", "--target-dir", target], cwd=place.directory, check=True)
    program = target / os.environ.get("CARGO_BUILD_TARGET", "") / "debug/axum_page"

    port = free_port()
    service = place.start(program, PORT=f"{port}")
    until(lambda: "leads in term" in service.output, "it leads in the background")
    web_service(place, port, service)
    assert service.process.returncode == 0 and place.holder("cleaner") is None
    service = place.start(program, PORT=f"{port}")
    without_redis(place, port, service)


def shell(place: Place) -> None:
    """Each script, with the output that the page shows after it."""
    blocks = place.page.blocks()
    printed = {block.recipe: after.text for block, after in zip(blocks, blocks[1:]) if block.recipe}
    for recipe in ("run", "busy", "lost", "once"):
        assert place.run("sh", place.write(recipe, f"{recipe}.sh")) == printed[recipe], recipe
