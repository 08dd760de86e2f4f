from __future__ import annotations

import time
import uuid

from berth import Berth, RequestError, WaitTimeoutError
from support import FleetTest, control, until_go, wait_until


class Jobs(FleetTest):
    def test_a_job_that_nobody_waits_for_can_be_asked_for_later_by_its_id(self) -> None:
        job = self.acme.enqueue.exec("echo later")
        again = self.berth.job(job.id)
        self.assertEqual(again.result().stdout, "later\n")
        state = again.state()
        self.assertEqual((state.state, state.tenant, state.kind), ("finished", "acme", "exec"))
        assert state.result
        self.assertEqual(state.result.stdout, "later\n")

    def test_the_same_id_is_run_once(self) -> None:
        name = f"once-{uuid.uuid4().hex}"
        results = [self.acme.exec("echo x >> ran", id=name) for _ in range(3)]
        self.assertTrue(all(result.ok for result in results))
        self.assertEqual(self.lines("ran"), ["x"])

    def test_a_wait_ends_in_time_and_the_job_goes_on_until_it_is_cancelled(self) -> None:
        job = self.acme.enqueue.exec("sleep 60")
        with self.assertRaises(WaitTimeoutError) as caught:
            job.result(wait_ms=100)
        self.assertEqual(caught.exception.job_id, job.id)
        self.assertIn(job.id, [one.id for one in self.berth.jobs(tenant="acme")])
        behind = self.acme.enqueue.exec("echo behind")
        wait_until(lambda: job.state().state == "running")
        why = behind.why()
        self.assertEqual((why.state, why.job_id), ("waiting", behind.id))
        self.assertTrue(why.reasons and why.codes)
        assert why.behind
        self.assertEqual((why.behind.job_id, why.behind.tenant, why.behind.session), (job.id, "acme", "main"))
        self.assertIsNotNone(why.behind.running_ms)
        running = job.why()
        self.assertGreaterEqual(running.running_ms or 0, why.behind.running_ms or 0)
        self.assertEqual((running.behind, running.outcome, running.exit_code), (None, None, None))
        self.assertEqual((running.pool, running.home), (running.wire["pool"], running.wire["home"]))
        self.assertTrue(running.held_by and running.pool == "default" and running.home)
        job.cancel()
        self.assertEqual(job.result().outcome.kind, "cancelled")
        ended = job.why()
        assert ended.outcome
        self.assertEqual((ended.state, ended.outcome.kind, ended.exit_code), ("finished", "cancelled", 130))
        self.assertEqual(behind.result().stdout, "behind\n")
        with Berth(wait_ms=100) as hasty:
            with self.assertRaises(WaitTimeoutError) as caught:
                self.at(hasty).exec("sleep 60")
        assert caught.exception.job_id
        self.berth.job(caught.exception.job_id).cancel()

    def test_events_tell_of_output_as_it_comes_and_never_split_a_character(self) -> None:
        # The euro sign's three bytes leave in two pieces: the second only when the first has been read.
        command = f"printf 'a\\342\\202'; {until_go}; printf '\\254b'; echo e >&2; exit 7"
        job = self.acme.enqueue.exec(command)
        types, text = [], ""
        for event in job.events():
            types.append(event.type)
            if event.type == "stdout":
                if text == "":
                    self.go()
                text += event.text
            elif event.type == "finished":
                assert event.result
                self.assertEqual(event.result.exit_code, 7)
        self.assertEqual(text, "a€b")
        self.assertEqual((types[0], types[-1], "stderr" in types), ("started", "finished", True))
        first, *_ = job.events()
        self.assertEqual([one.type for one in job.events(after=first.id)], types[1:])

    def test_delays_retries_and_labels_are_those_of_the_order(self) -> None:
        started = time.monotonic()
        self.assertTrue(self.acme.exec("true", delay_ms=300).ok)
        self.assertGreaterEqual(time.monotonic() - started, 0.3)
        tried = self.acme.exec("echo x >> tries; [ $(wc -l < tries) = 2 ]", retry={"attempts": 3, "backoff_ms": 20})
        self.assertTrue(tried.ok)
        order = self.acme.order.exec(
            "true", labels={"run_of": "a"}, deadline_at_ms=5, retry={"attempts": 2, "backoff_ms": 1}
        )
        self.assertEqual(
            order,
            {
                "tenant": "acme",
                "scope": "agent",
                "agent": self.name,
                "session": "main",
                "labels": {"run_of": "a"},
                "deadlineAtMs": 5,
                "retry": {"attempts": 2, "backoffMs": 1},
                "request": {"kind": "exec", "command": "true"},
            },
        )

    def test_what_the_gateway_refuses_has_its_code_and_is_not_tried_again(self) -> None:
        with self.assertRaises(RequestError) as caught:
            self.berth.job("no-such-job").result()
        self.assertEqual((caught.exception.code, caught.exception.status), ("not-found", 404))
        self.assertTrue(caught.exception.request_id)
        with Berth(key="not-a-key") as stranger, self.assertRaises(RequestError) as caught:
            stranger.jobs()
        self.assertEqual((caught.exception.code, caught.exception.retry), ("unauthorized", False))
        self.assertIn("workers", self.berth.call("GET", "/v1/fleet/workers"))
        with self.assertRaisesRegex(ValueError, "no address of a gateway"):
            Berth("localhost:8080")

    def test_requests_share_one_connection(self) -> None:
        before = control("counts")["opened"]
        acme = self.at(self.cut_berth)
        for n in range(5):
            acme.exec(f"echo {n}").check()
        self.assertEqual(control("counts")["opened"] - before, 1)
