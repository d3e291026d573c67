"""Browser: Chromium without a window, by the WebDriver protocol of its chromedriver."""

import base64
import json
import shutil
import subprocess
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from support.observe import PATIENCE

# No connection but to the page: without these it looks for updates, and for hosts of its maker.
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync", "--hide-scrollbars"]


class Browser:
    """A browser with one page. Without Debian's packages the test is skipped."""

    def __init__(self, *flags: str) -> None:
        # GitHub's machines have the other name.
        self._program, driver = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
        if self._program is None or driver is None:
            pytest.skip("chromium or chromedriver is missing: install the Debian packages chromium and chromium-driver")
        self._flags = [*FLAGS, *flags]
        self._profile = tempfile.TemporaryDirectory(prefix="locktender-browser-", ignore_cleanup_errors=True)
        self._driver = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self._session = ""

    def __enter__(self) -> "Browser":
        try:
            assert self._driver.stdout is not None
            port = next(line.split()[-1].rstrip(".") for line in self._driver.stdout if "started successfully on port" in line)
            self._session = f"http://127.0.0.1:{port}/session"
            options = {"binary": self._program, "args": [*self._flags, f"--user-data-dir={self._profile.name}"]}
            wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
            self._session += "/" + self._ask("", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._session.count("/") > 3:
            self._ask("", method="DELETE")
        self._driver.terminate()
        self._driver.wait()
        assert self._driver.stdout is not None
        self._driver.stdout.close()
        self._profile.cleanup()

    def _ask(self, path: str, body: object = None, method: str | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._session + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read())["value"]

    def open(self, url: str) -> None:
        """Opens a page. What the page before it had to complain is forgotten."""
        self._ask("/url", {"url": "about:blank"})
        self.complaints()
        self._ask("/url", {"url": url})

    def run(self, script: str, *arguments: object) -> Any:
        """Runs the body of a function in the page."""
        return self._ask("/execute/sync", {"script": script, "args": arguments})

    def press(self, keys: str) -> None:
        """Types on the keyboard; U+E004 is Tab, U+E00D Space."""
        strokes = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._ask("/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": strokes}]})

    def complaints(self) -> list[str]:
        """What the console has said since this was last asked: errors, and what the page's policy refused."""
        return [entry["message"] for entry in self._ask("/se/log", {"type": "browser"}) if entry["level"] in ("SEVERE", "WARNING")]

    def size(self, width: int, height: int) -> None:
        view = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._ask("/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": view})

    def picture(self, file: Path, width: int, height: int) -> None:
        self.size(width, height)
        file.write_bytes(base64.b64decode(self._ask("/screenshot")))

    def medium(self, name: str) -> None:
        """Lays the page out for `print` or `screen`, in the width that it has."""
        self._ask("/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {"media": name}})

    def zone(self, name: str) -> None:
        self._ask("/goog/cdp/execute", {"cmd": "Emulation.setTimezoneOverride", "params": {"timezoneId": name}})

    def pdf(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self._ask("/print", {"background": False})))

    def dark(self, is_dark: bool) -> None:
        feature = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self._ask("/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {"features": [feature]}})
