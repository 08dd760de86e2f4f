from __future__ import annotations

import os
import threading
import time
import unittest.mock
from typing import Any, Callable, Iterator

from berth import Berth, Order, SilentError, UnreachableError
from support import FleetTest, control, until_go, wait_until


class Dropped(FleetTest):
    """What becomes of calls whose connection to the gateway breaks."""

    def test_a_submission_whose_answer_got_lost_is_sent_again_and_run_once(self) -> None:
        acme = self.at(self.cut_berth)
        acme.exec("true").check()
        before = control("counts")["cuts"]
        control("lose-next")
        self.assertEqual(acme.exec("echo x >> ran; echo done").stdout, "done\n")
        control("lose-next")
        acme.enqueue.exec("echo y >> ran").result().check()
        self.assertEqual(control("counts")["cuts"] - before, 2)
        self.assertEqual(self.lines("ran"), ["x", "y"])

    def test_a_call_that_waits_for_its_result_survives_a_cut(self) -> None:
        result = in_background(lambda: self.at(self.cut_berth).exec(f"echo x >> ran; {until_go}; echo done"))
        wait_until(lambda: self.acme_is("running"))
        control("cut")
        self.go()
        self.assertEqual(result().stdout, "done\n")
        self.assertEqual(self.lines("ran"), ["x"])

    def test_events_go_on_behind_the_last_one(self) -> None:
        job = self.at(self.cut_berth).enqueue.exec(f"echo one; {until_go}; echo two; echo three")
        events = job.events()
        seen = [next(events)]
        while seen[-1].type != "stdout":
            seen.append(next(events))
        control("cut")
        self.go()
        seen += events
        self.assertEqual(len({event.id for event in seen}), len(seen))
        self.assertEqual("".join(event.text for event in seen), "one\ntwo\nthree\n")
        self.assertEqual([event.type for event in seen if event.type != "stdout"], ["started", "finished"])

    def test_a_batch_whose_parts_and_results_break_off_runs_nothing_twice(self) -> None:
        def orders() -> Iterator[Order]:
            for index in range(60):
                if index == 25:
                    # The answer to the second part is lost, the third part finds its connection closed.
                    control("lose-next")
                if index == 45:
                    control("cut")
                yield self.acme.order.exec(f"echo {index} | tee -a ran")

        with unittest.mock.patch("berth.batches._PART_ORDERS", 20):
            batch = self.cut_berth.batches.submit(orders())
        seen = []
        for line in self.cut_berth.batches.get(batch.id).results():
            seen.append(line)
            if len(seen) == 20:
                control("cut")
        self.assertEqual([line.position for line in seen], list(range(1, 61)))
        self.assertEqual(sorted(line.index for line in seen), list(range(60)))
        self.assertEqual(sorted(self.lines("ran"), key=int), [str(index) for index in range(60)])

    def test_a_gateway_that_is_away_for_too_long_is_an_error_with_the_job_id_to_go_on_with(self) -> None:
        control("stop")
        try:
            with Berth(os.environ["BERTH_CUT_URL"], outage_ms=300) as hasty:
                started = time.monotonic()
                with self.assertRaises(UnreachableError) as caught:
                    self.at(hasty).exec("echo x >> ran")
                self.assertLess(time.monotonic() - started, 20)
        finally:
            control("start")
        error = caught.exception
        self.assertTrue(error.retry and error.job_id)
        self.at(self.cut_berth).exec("echo x >> ran", id=error.job_id or "").check()
        self.assertEqual(self.lines("ran"), ["x"])

    def test_a_gateway_that_comes_back_in_time_is_waited_for(self) -> None:
        control("stop")
        result = in_background(lambda: self.at(self.cut_berth).exec("echo back"))
        control("start")
        self.assertEqual(result().stdout, "back\n")

    def test_a_gateway_that_says_nothing_is_given_up_in_time(self) -> None:
        with Berth(os.environ["BERTH_CUT_URL"], request_timeout_ms=200, outage_ms=0) as hasty:
            acme = self.at(hasty)
            hasty.call("GET", "/healthz")
            control("silence")
            try:
                with self.assertRaises(SilentError):
                    acme.enqueue.exec("true")
            finally:
                control("cut")

    def acme_is(self, state: str) -> bool:
        return any(job.state == state and job.wire["sandbox"].endswith(self.name) for job in self.berth.jobs())


def in_background(call: Callable[[], Any]) -> Callable[[], Any]:
    """Gives what waits for the call's end."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()), daemon=True)
    thread.start()

    def ended() -> Any:
        thread.join(60)
        if not found:
            raise AssertionError("the call did not end, or raised")
        return found[0]

    return ended
