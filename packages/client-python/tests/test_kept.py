from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

from berth import DamagedError, RequestError
from support import FleetTest, control


class Kept(FleetTest):
    def test_artifacts_are_read_saved_and_checked(self) -> None:
        [small] = self.acme.exec("printf 'total: 8' > report.md", artifacts=["*.md"]).check().artifacts
        self.assertEqual((small.path, small.size, small.mime), ("report.md", 8, "text/markdown"))
        self.assertEqual(self.berth.artifacts.read(small), b"total: 8")
        self.assertEqual(self.berth.artifacts.read(small.id), b"total: 8")
        wrong = dataclasses.replace(small, sha256="0" * 64)
        with tempfile.TemporaryDirectory() as directory:
            target = Path(directory, "report.md")
            self.assertEqual(self.berth.artifacts.save(small, target), 8)
            self.assertEqual(target.read_bytes(), b"total: 8")
            with self.assertRaises(DamagedError):
                self.berth.artifacts.save(wrong, Path(directory, "wrong"))
            self.assertEqual([one.name for one in Path(directory).iterdir()], ["report.md"])
        with self.assertRaises(RequestError):
            self.berth.artifacts.read("0" * 32)

    def test_an_artifact_whose_connection_breaks_is_read_on_from_there(self) -> None:
        make = "head -c 20000000 /dev/urandom > big; sha256sum big | cut -c 1-64"
        kept = self.acme.exec(make, artifacts=["big"]).check()
        pieces = self.cut_berth.artifacts.pieces(kept.artifacts[0])
        size = len(next(pieces))
        control("cut")
        before = control("counts")["opened"]
        size += sum(len(piece) for piece in pieces)
        self.assertEqual(size, 20_000_000)
        self.assertEqual(control("counts")["opened"], before + 1)
        self.assertEqual(kept.stdout.strip(), kept.artifacts[0].sha256)

    def test_schedules_are_made_looked_at_paused_and_removed(self) -> None:
        schedules = self.berth.schedules
        order = self.acme.order.exec("echo beat")
        made = schedules.put(self.name, order, cron="30 2 * * 1-5", time_zone="Europe/Berlin")
        self.assertEqual((made.id, made.tenant, made.cron, made.runs), (self.name, "acme", "30 2 * * 1-5", 0))
        self.assertIsNotNone(made.next_due_ms)
        self.assertTrue(schedules.pause(self.name).paused)
        self.assertFalse(schedules.resume(self.name).paused)
        self.assertIn(self.name, [one.id for one in schedules.list()])
        schedules.remove(self.name)
        self.assertIsNone(schedules.get(self.name))
        with self.assertRaisesRegex(RequestError, "either cron or everyMs"):
            schedules.put(self.name, self.acme.order.exec("true"))
