"""What can go wrong. One hierarchy: catch `BerthError` for all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping

if TYPE_CHECKING:
    from .results import Result


class BerthError(Exception):
    """A call failed.

    `code` is a code of docs/faults.md, of the HTTP API, or one of this package's own. `retry` is true if the
    same call may succeed later without any change.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        retry: bool = False,
        job_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.retry = retry
        #: The job that it is about. Submitting a job again with this id runs it once.
        self.job_id = job_id

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class UnreachableError(BerthError):
    """No gateway answered within the time that was given, or its connection broke each time."""

    def __init__(self, message: str, *, retry: bool = True, job_id: str | None = None) -> None:
        super().__init__(message, code="gateway-unreachable", retry=retry, job_id=job_id)
        #: The request may have reached the gateway.
        self.sent = True


class SilentError(UnreachableError):
    """The connection is open, but the gateway sent nothing for too long."""


class InvalidAnswerError(BerthError):
    """The answer is not one of a Berth gateway, or this version cannot read it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="invalid-answer")


class RequestError(BerthError):
    """The gateway answered, and refused or failed."""

    def __init__(self, status: int, problem: Mapping[str, Any], *, retry_after_s: float | None) -> None:
        code = _text(problem, "code") or f"http-{status}"
        detail = _text(problem, "detail") or f"the gateway answered {status}"
        # A proxy that reaches no gateway answers without a problem document. A gateway that stops is replaced soon.
        passes = status in (502, 503, 504) and (not problem or code == "unavailable")
        super().__init__(
            detail, code=code, retry=passes or retry_after_s is not None, job_id=_text(problem, "jobId")
        )
        self.status = status
        self.retry_after_s = retry_after_s
        #: Every reason why the request is invalid.
        problems = problem.get("problems")
        self.problems: tuple[str, ...] = tuple(map(str, problems)) if isinstance(problems, list) else ()
        #: Of a submission: `no`, the fleet does not have the job; `unknown`, it may have it, and may run it.
        self.accepted: str | None = _text(problem, "accepted")
        #: In the gateway's log.
        self.request_id: str | None = _text(problem, "requestId")

    def __str__(self) -> str:
        return f"{self.code}: {'; '.join(self.problems) or self.message}"


def _text(problem: Mapping[str, Any], name: str) -> str | None:
    value = problem.get(name)
    return value if isinstance(value, str) else None


class WaitTimeoutError(BerthError):
    """The result was not there in time. The job goes on; `job_id` names it."""

    def __init__(self, job_id: str, wait_ms: float) -> None:
        super().__init__(
            f"the job {job_id} has not ended within {wait_ms:g} ms; it goes on",
            code="wait-timeout",
            retry=True,
            job_id=job_id,
        )


class JobFailedError(BerthError):
    """Raised by `Result.check()`: the job ended, but not with success."""

    def __init__(self, result: "Result") -> None:
        super().__init__(result.text or str(result.outcome), code=result.outcome.kind)
        self.result = result


class DamagedError(BerthError):
    """The bytes that arrived are not those of the artifact."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="artifact-damaged", retry=True)
