"""Jobs that are submitted on a schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, List, Literal, Mapping, TypedDict

from .errors import RequestError
from .transport import Transport, path
from .wire import camel_keys, items, read, whole

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import Order


class ScheduleOptions(TypedDict, total=False):
    """Either `cron` or `every_ms`. docs/client.md explains each."""

    cron: str
    every_ms: int
    time_zone: str
    catch_up: Literal["skip", "once", "all"]
    paused: bool
    start_at_ms: int
    end_at_ms: int
    max_runs: int


@dataclass(frozen=True)
class Schedule:
    id: str
    tenant: str
    runs: int
    time_zone: str
    catch_up: str
    cron: str | None = None
    every_ms: int | None = None
    paused: bool = False
    #: None: never again.
    next_due_ms: int | None = None
    last_job_id: str | None = None
    wire: Mapping[str, Any] = whole()


class Schedules:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def put(self, schedule_id: str, order: Order, **timing: Unpack[ScheduleOptions]) -> Schedule:
        """Creates the schedule, or replaces the one of the same id. With unchanged times it continues where it was."""
        return self._call("PUT", schedule_id, body={**camel_keys(timing), "order": order})

    def get(self, schedule_id: str) -> Schedule | None:
        try:
            return self._call("GET", schedule_id)
        except RequestError as error:
            if error.code == "not-found":
                return None
            raise

    def list(self) -> List[Schedule]:
        return [read(Schedule, one) for one in items(self._transport.json("GET", "/v1/schedules"), "schedules")]

    def pause(self, schedule_id: str) -> Schedule:
        return self._call("POST", schedule_id, "pause")

    def resume(self, schedule_id: str) -> Schedule:
        """`catch_up` decides about the runs missed meanwhile."""
        return self._call("POST", schedule_id, "resume")

    def remove(self, schedule_id: str) -> None:
        """Jobs that it has already submitted still run."""
        self._transport.remove(path("v1", "schedules", schedule_id))

    def _call(self, method: str, schedule_id: str, *verb: str, body: Any = None) -> Schedule:
        return read(Schedule, self._transport.json(method, path("v1", "schedules", schedule_id, *verb), body=body))
