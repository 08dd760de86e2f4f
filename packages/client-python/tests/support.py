"""What each test has: a gateway with a fleet, and a second way to it that can be cut."""

from __future__ import annotations

import json
import os
import time
import unittest
import urllib.request
import uuid
from typing import Any, Callable

from berth import Berth, Tenant


def control(verb: str) -> Any:
    """`cut`, `silence`, `lose-next`, `stop` or `start` that way; each answers what it has seen, as `counts` does."""
    with urllib.request.urlopen(f"{os.environ['BERTH_CONTROL_URL']}/{verb}", data=b"", timeout=30) as answer:
        return json.load(answer)


#: A command that waits for `go()`.
until_go = "until [ -e go ]; do sleep 0.02; done"


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not holds():
        if time.monotonic() > until:
            raise AssertionError("it did not come true within a minute")
        time.sleep(0.02)


class FleetTest(unittest.TestCase):
    berth: Berth
    cut_berth: Berth

    def setUp(self) -> None:
        self.berth = Berth()
        self.cut_berth = Berth(os.environ["BERTH_CUT_URL"])
        self.addCleanup(self.berth.close)
        self.addCleanup(self.cut_berth.close)
        self.name = f"t-{uuid.uuid4().hex[:12]}"
        self.acme = self.at(self.berth)

    def at(self, berth: Berth, session: str = "main") -> Tenant:
        """A sandbox of the test's own. Its sessions run side by side."""
        return berth.tenant("acme", scope="agent", agent=self.name, session=session)

    def go(self) -> None:
        """What `until_go` waits for."""
        self.at(self.berth, "other").write("go", "").check()

    def lines(self, path: str) -> list[str]:
        return self.acme.exec(f"cat {path}").check().stdout.split()
