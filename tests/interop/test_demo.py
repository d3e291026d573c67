"""The demo: it runs, and its check fails where it must."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.checkout import ROOT, prepared
from support.observe import PATIENCE

FIGHT: list[str | Path] = [prepared("bin/python"), ROOT / "examples/sweetroll"]
DASHBOARDS = ROOT / "examples/dashboards"
WHO = ("Diego (Python)", "Gorn (Node)", "Milten (Rust)")


def demo(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*FIGHT, *arguments], capture_output=True, text=True, timeout=PATIENCE)


def line(fence: int, who: str, since: float, until: float, at: float, event: str = "bites") -> dict[str, Any]:
    return {"fence": fence, "who": who, "event": event, "since": since, "checked": since, "until": until, "at": at}


def judged(file: Path, *lines: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    file.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return demo("--check", file)


def reported(report: Path) -> dict[str, Any]:
    """The data of the page that the demo wrote."""
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', report.read_text(), re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_three_languages_fight_and_nobody_overlaps(tmp_path: Path):
    shared, report = tmp_path / "shared.jsonl", tmp_path / "report.html"
    fight = demo("--seconds", "8", "--keep", shared, "--report", report)
    assert fight.returncode == 0, fight.stdout + fight.stderr
    assert len([row for row in fight.stdout.splitlines() if row.startswith(WHO)]) == 3
    assert "no two of them valid at once" in fight.stdout
    assert demo("--check", shared).returncode == 0
    holds = {(span["lane"], span["source"]) for span in reported(report)["spans"] if span["what"] == "holds"}
    assert holds >= {(who.split()[0], source) for who in WHO for source in ("client", "server")}


def test_every_trouble_shows_in_the_log_the_metrics_the_dashboards_the_alerts_and_on_the_page(tmp_path: Path):
    report = tmp_path / "report.html"
    shown = demo("--troubles", "--report", report)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    address, *troubles = shown.stdout.strip().split("\n\n")
    assert address.startswith("watch it at http://127.0.0.1:") and len(troubles) == 10
    for trouble in troubles:
        assert re.search(r"\n   log     [A-Z]+ \w+ .*\n   metric  locktender_\w+\{.*\} [1-9]", trouble), trouble
    text = "\n".join(troubles)
    assert 'log     WARNING overlapped key="honeynut"' in text and 'log     WARNING expired key="honeynut"' in text
    panels = [{panel["title"] for panel in json.loads(file.read_text())["panels"]} for file in DASHBOARDS.glob("grafana-*.json")]
    assert set(re.findall(r"^   panel   (.*)$", text, re.MULTILINE)) <= set.intersection(*panels)
    rules = (DASHBOARDS / "rules.yml").read_text()
    assert set(re.findall(r"^   alert   (.*)$", text, re.MULTILINE)) <= set(re.findall(r"alert: (\w+)", rules))
    page = reported(report)
    assert {"overlapped", "lost", "expired", "dead", "failed_over"} <= {event["kind"] for event in page["events"] if event["trouble"]}
    assert any(span["overlapped"] and span["lock"] == "honeynut" for span in page["spans"])


@pytest.mark.long
def test_in_a_fight_one_is_killed_and_a_stale_write_of_a_paused_one_is_refused():
    fight = demo("--seconds", "8")
    assert fight.returncode == 0, fight.stdout + fight.stderr
    rows = [row for row in fight.stdout.splitlines() if row.startswith(WHO)]
    assert len(rows) == 3
    for who, row in zip(WHO, rows, strict=True):
        acquisitions, waits = row.removeprefix(who).split()[:2]
        assert int(acquisitions) > 0 and int(waits) > 0
    assert "is killed" in fight.stdout and "is paused" in fight.stdout
    assert "a stale write of" in fight.stdout, "the paused one's write must come behind a newer fence"
    assert "no two of them valid at once" in fight.stdout


@pytest.mark.long
def test_the_fight_goes_on_while_two_of_five_servers_are_killed_and_come_back():
    fight = demo("--quorum", "--seconds", "9", "--plain")
    assert fight.returncode == 0, fight.stdout + fight.stderr
    events = [(at, who, event) for at, who, event in map(shown, fight.stdout.splitlines()) if event]
    outages = [at for at, who, event in events if (who, event) == ("Servers", "two die")]
    returns = [at for at, who, event in events if (who, event) == ("Servers", "come back")]
    assert len(outages) == len(returns) == 2, fight.stdout
    # The second time a majority needs the two that were gone before.
    for two_die, come_back in zip(outages, returns, strict=True):
        assert any(event == "takes" and two_die < at < come_back + 1 for at, _, event in events), fight.stdout
    assert any(event == "takes" and at > returns[-1] for at, _, event in events), fight.stdout
    assert "no two of them valid at once" in fight.stdout


def shown(line: str) -> tuple[float, str, str]:
    """When, who and what, of a plain line of the timeline."""
    found = re.match(r" *(\d+\.\d{3})  (\w+) +(\w+(?: \w+)?)", line)
    return (float(found[1]), found[2], found[3]) if found else (0.0, "", "")


def test_two_valid_holds_at_once_fail_the_check(tmp_path: Path):
    judgement = judged(tmp_path / "file", line(1, "Diego", 0.0, 1.0, 0.5), line(2, "Gorn", 0.9, 1.9, 1.1))
    assert judgement.returncode == 1
    assert "Diego (1) and Gorn (2) held it at once for 100.0 ms" in judgement.stdout


def test_a_fence_that_does_not_rise_fails_the_check(tmp_path: Path):
    judgement = judged(tmp_path / "file", line(2, "Diego", 0.0, 1.0, 0.5), line(1, "Gorn", 1.1, 2.0, 1.5))
    assert judgement.returncode == 1
    assert "with fence 1 after 2" in judgement.stdout


def test_a_write_behind_a_newer_fence_is_refused_but_no_overlap(tmp_path: Path):
    lines = (line(1, "Diego", 0.0, 1.0, 0.5), line(2, "Gorn", 1.1, 2.0, 1.5), line(1, "Diego", 0.0, 1.0, 1.6))
    judgement = judged(tmp_path / "file", *lines)
    assert judgement.returncode == 0
    assert "a stale write of Diego, 600 ms after its validity had ended" in judgement.stdout


def test_who_leaves_early_may_be_followed_at_once(tmp_path: Path):
    lines = (line(1, "Diego", 0.0, 9.0, 0.5), line(1, "Diego", 0.0, 9.0, 0.6, "leaves"), line(2, "Gorn", 0.7, 1.7, 0.9))
    assert judged(tmp_path / "file", *lines).returncode == 0
