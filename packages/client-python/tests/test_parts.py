from __future__ import annotations

import ast
import itertools
import sys
import unittest
from pathlib import Path

import berth
from berth.batches import _parts
from berth.errors import RequestError, UnreachableError
from berth.backoff import Backoff
from berth.results import Outcome, Result
from berth.wire import camel, read

package = Path(berth.__file__).parent


class Parts(unittest.TestCase):
    def test_the_package_needs_nothing_but_the_standard_library_and_tells_its_types(self) -> None:
        self.assertTrue((package / "py.typed").is_file())
        imported: set[str] = set()
        for file in package.glob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Import):
                    imported |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.level == 0:
                    imported.add((node.module or "").split(".")[0])
        # Only for type checkers, which bring it.
        self.assertEqual(imported - set(sys.stdlib_module_names), {"typing_extensions"})
        self.assertNotIn("typing_extensions", sys.modules)

    def test_what_a_newer_gateway_adds_is_kept_and_does_not_disturb(self) -> None:
        wire = {
            "outcome": {"kind": "frozen", "novel": 1},
            "value": {"stdout": "x", "cutBytes": 2, "novel": 3, "lines": {"first": 1, "last": 1, "more": False}},
            "timing": {"wallMs": 1, "cpuMs": 2, "queueMs": 3},
        }
        result = Result.of_wire(wire)
        self.assertEqual((result.stdout, result.cut_bytes, result.outcome.kind), ("x", 2, "frozen"))
        self.assertEqual(result.wire["value"]["novel"], 3)
        self.assertFalse(result.ok)
        self.assertEqual(camel("a_bc_ms"), "aBcMs")

    def test_each_end_of_a_command_has_the_shells_exit_code(self) -> None:
        wires: list[tuple[dict[str, object], int | None]] = [
            ({"kind": "done"}, 0),
            ({"kind": "exited", "code": 9}, 9),
            ({"kind": "signalled", "signal": 15}, 143),
            ({"kind": "timed-out", "afterMs": 5}, 124),
            ({"kind": "cancelled", "reason": "asked"}, 130),
            ({"kind": "refused", "code": "not-found", "message": "gone"}, None),
            ({"kind": "lost", "message": "gone"}, None),
        ]
        for wire, code in wires:
            self.assertEqual(read(Outcome, wire).exit_code, code, wire)

    def test_only_what_passes_is_tried_again_and_not_for_ever(self) -> None:
        backoff = Backoff(outage_ms=10_000)
        refused = RequestError(400, {"code": "invalid-request", "detail": "no"}, retry_after_s=None)
        with self.assertRaises(RequestError):
            backoff.after(refused)
        backoff.after(UnreachableError("away"))
        with self.assertRaises(UnreachableError):
            Backoff(outage_ms=1).after(UnreachableError("away"))
        full = RequestError(429, {"code": "sandbox-full", "detail": "full"}, retry_after_s=60)
        with self.assertRaises(RequestError):
            backoff.after(full)
        self.assertTrue(full.retry)
        self.assertTrue(RequestError(502, {}, retry_after_s=None).retry)
        self.assertFalse(RequestError(503, {"code": "redis-unauthorized"}, retry_after_s=None).retry)

    def test_orders_are_sent_in_parts_of_many_and_none_is_left_out(self) -> None:
        order: berth.Order = {"tenant": "acme", "request": {"kind": "exec", "command": "x" * 1_000}}
        counts = [count for count, _ in _parts(itertools.repeat(order, 2_500))]
        self.assertEqual(counts, [1_000, 1_000, 500])
        large: berth.Order = {"tenant": "acme", "request": {"kind": "exec", "command": "x" * 1_000_000}}
        parts = list(_parts(itertools.repeat(large, 7)))
        self.assertEqual([count for count, _ in parts], [5, 2])
        self.assertEqual(sum(lines.count(b"\n") for _, lines in parts), 7)
        self.assertEqual(list(_parts([])), [])
