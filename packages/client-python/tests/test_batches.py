from __future__ import annotations

import uuid
from typing import Iterator

from berth import BerthError, Order
from support import FleetTest


class Batches(FleetTest):
    def orders(self, count: int) -> Iterator[Order]:
        for index in range(count):
            yield self.acme.order.exec(f"echo {index} | tee -a ran; exit $(({index} == 3))", labels={"n": str(index)})

    def test_a_batch_takes_a_generator_and_gives_each_result_once(self) -> None:
        batch = self.berth.batches.submit(self.orders(20))
        lines = list(batch.results())
        self.assertEqual([line.position for line in lines], list(range(1, 21)))
        self.assertEqual(sorted(line.index for line in lines), list(range(20)))
        for line in lines:
            assert line.result
            self.assertEqual(line.result.stdout, f"{line.index}\n")
            self.assertEqual((line.tenant, line.session, line.result.labels), ("acme", "main", {"n": str(line.index)}))
            self.assertTrue(line.result.worker and line.result.timing.finished_at_ms)
        self.assertEqual([line.index for line in lines if not line.ok], [3])
        state = batch.state()
        self.assertEqual((state.state, state.total, state.finished, state.failed), ("finished", 20, 20, 1))
        again = self.berth.batches.get(batch.id)
        self.assertEqual(list(again.results(after=18, follow=False)), lines[18:])
        self.assertIn(batch.id, [one.id for one in self.berth.batches.list()])

    def test_the_same_name_goes_on_with_the_same_batch_and_runs_nothing_twice(self) -> None:
        name = f"nightly-{uuid.uuid4().hex}"

        def broken() -> Iterator[Order]:
            yield from self.orders(2)
            raise OSError("the file of orders cannot be read")

        with self.assertRaisesRegex(OSError, "cannot be read"):
            self.berth.batches.submit(broken(), name=name)
        first = self.berth.batches.submit(self.orders(4), name=name)
        second = self.berth.batches.submit(list(self.orders(4)), name=name)
        found = self.berth.batches.find(name)
        self.assertEqual([first.id, found and found.id], [second.id, second.id])
        self.assertIsNone(self.berth.batches.find(f"{name}-other"))
        self.assertEqual(sorted(line.index for line in second.results()), [0, 1, 2, 3])
        self.assertEqual(sorted(self.lines("ran")), ["0", "1", "2", "3"])

    def test_an_order_that_does_not_fit_is_refused_and_the_others_run(self) -> None:
        batch = self.berth.batches.submit([self.acme.order.exec("true"), self.acme.order.run({"kind": "nope"})])
        good, bad = sorted(batch.results(), key=lambda line: line.index)
        self.assertTrue(good.ok)
        self.assertFalse(bad.ok)
        self.assertRegex(bad.refused or "", "the kinds are")
        with self.assertRaisesRegex(BerthError, "no such batch"):
            self.berth.batches.get("bat_none").state()

    def test_a_batch_is_cancelled_as_a_whole(self) -> None:
        batch = self.berth.batches.submit(self.acme.order.exec("sleep 60") for _ in range(3))
        batch.cancel()
        kinds = [line.result.outcome.kind for line in batch.results() if line.result]
        self.assertEqual(kinds, ["cancelled"] * 3)
