from __future__ import annotations

import io
import tarfile

from berth import JobFailedError, RequestError, step
from support import FleetTest


class Commands(FleetTest):
    def test_a_command_gives_its_output_its_text_and_how_it_ended(self) -> None:
        result = self.acme.exec("echo out; echo err >&2; exit 3", timeout_ms=60_000)
        self.assertEqual((result.stdout, result.stderr), ("out\n", "err\n"))
        self.assertEqual((result.outcome.kind, result.outcome.code, result.exit_code), ("exited", 3, 3))
        self.assertEqual(result.text, "out\nerr\n[exit 3]")
        self.assertFalse(result.ok)
        self.assertGreater(result.timing.wall_ms, 0)
        with self.assertRaisesRegex(JobFailedError, r"exited: (?s:.*)\[exit 3\]") as caught:
            result.check()
        self.assertIs(caught.exception.result, result)

    def test_options_reach_the_command_and_its_limits(self) -> None:
        self.acme.write("src/here", "")
        argv = ["sh", "-c", 'ls; echo "$NAME"; cat', "sh", "two words"]
        result = self.acme.exec(argv, cwd="src", env={"NAME": "ada"}, stdin="in\n", labels={"a_b": "c"})
        self.assertEqual(result.check().stdout, "here\nada\nin\n")
        late = self.acme.exec("sleep 30", timeout_ms=200, grace_ms=0)
        self.assertEqual((late.outcome.kind, late.outcome.after_ms, late.exit_code), ("timed-out", 200, 124))

    def test_files_are_written_read_edited_listed_and_found(self) -> None:
        written = self.acme.write("a.txt", "one\ntwö\nthree\n")
        self.assertEqual((written.size, written.created), (15, True))
        self.assertEqual(self.acme.edit("a.txt", "twö", "2").count, 1)
        part = self.acme.read("a.txt", line=2, lines=1)
        self.assertEqual(part.content, "2\n")
        assert part.lines
        self.assertEqual((part.lines.first, part.lines.last, part.lines.more), (2, 2, True))
        raw = bytes(range(256))
        self.acme.write("raw", raw)
        self.assertEqual(self.acme.read("raw", binary=True).data, raw)
        self.assertEqual([entry.path for entry in self.acme.list().entries], ["a.txt", "raw"])
        [found] = self.acme.grep("^t.*e$", regex=True, include=["*.txt"]).matches
        self.assertEqual((found.path, found.line, found.text), ("a.txt", 3, "three"))
        self.assertEqual([entry.path for entry in self.acme.glob("*.txt").entries], ["a.txt"])
        self.acme.move("a.txt", "b.txt").check()
        self.acme.patch("--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-one\n+1\n").check()
        self.assertEqual(self.acme.stat("b.txt", hash=True).size, 10)
        self.assertEqual(self.acme.remove("b.txt").count, 1)
        missing = self.acme.read("b.txt")
        self.assertEqual((missing.outcome.kind, missing.outcome.code), ("refused", "not-found"))
        self.assertRegex(missing.text, "^ERR: ")

    def test_code_steps_and_archives_run_as_one_job_each(self) -> None:
        self.assertEqual(self.acme.code("python", "import sys; print(sys.argv[1:])", args=["a b"]).stdout, "['a b']\n")
        done = self.acme.steps(
            [step.write("n.py", "print(6 * 7)"), step.exec("python3 n.py", timeout_ms=20_000), step.exec("exit 4")]
        )
        self.assertEqual([one.outcome.kind for one in done.steps], ["done", "exited", "exited"])
        self.assertEqual([one.exit_code for one in done.steps], [0, 0, 4])
        self.assertEqual(done.steps[1].stdout, "42\n")
        self.assertEqual(self.acme.copy({"in/a": "a", "in/b": b"\xff"}).count, 2)
        packed = self.acme.pack("in").check().data
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            self.assertEqual(sorted(one.name for one in archive if one.isfile()), ["in/a", "in/b"])
        self.acme.unpack(packed, "out").check()
        self.assertEqual(self.acme.read("out/in/b", binary=True).data, b"\xff")

    def test_what_cannot_be_a_job_is_refused_with_each_problem(self) -> None:
        with self.assertRaises(RequestError) as caught:
            self.acme.run({"kind": "exce"})
        self.assertEqual((caught.exception.status, caught.exception.code), (400, "invalid-request"))
        self.assertFalse(caught.exception.retry)
        self.assertIn("the kinds are exec, code", str(caught.exception))
        with self.assertRaisesRegex(RequestError, "timeout"):
            self.acme.exec("true", timeout=3)  # type: ignore[call-arg]
        with self.assertRaisesRegex(TypeError, "session"):
            step.exec("true", session="other")
