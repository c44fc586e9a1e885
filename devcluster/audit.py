"""Calls to an API server, from its audit log: user, verb and resource.

    audit = Audit(cluster)
    mark = audit.mark()
    ...
    assert audit.count(since=mark, user_agent="resource-manager-agent/") == {}

An Audit observes calls after its creation. Reading continues at the last position, across rotations of the file. A call
is in the log a moment after its answer; `mark` and `calls` wait for that moment by making a call of their own and
waiting until it shows up.
"""

import collections
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import orjson

from devcluster.api import Api
from localprocesses.local import wait_until

_SETTLE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Call:
    """One request. A watch is one call, from the moment it is open."""

    user_agent: str
    user: str
    verb: str
    resource: str
    """Plural, with the subresource (`pods/status`); the path of a request without a resource."""
    group: str
    namespace: str
    name: str
    status: int
    uri: str
    event: dict[str, Any]
    """The whole audit event."""


class Audit:
    def __init__(self, log: Path, api: Api) -> None:
        self._log = log
        self._api = api
        self._calls: list[Call] = []
        self._open_watches: set[str] = set()
        self._rest = b""
        self._file: IO[bytes] = log.open("rb")
        self._file.seek(0, 2)

    def close(self) -> None:
        self._file.close()

    def mark(self) -> int:
        """Return a position to be passed as `since`."""
        self._settle()
        return len(self._calls)

    def calls(
        self,
        *,
        since: int = 0,
        user_agent: str = "",
        namespace: str | None = None,
        verbs: Sequence[str] = (),
        leases: bool = False,
        watches: bool = False,
    ) -> list[Call]:
        """Return the calls since the mark; `user_agent` is a prefix, no `verbs` are all verbs.

        Calls for leases, and watches, count only on request: an idle program renews its lease and keeps watching.
        """
        self._settle()
        return [
            call
            for call in self._calls[since:]
            if call.user_agent.startswith(user_agent)
            and (namespace is None or call.namespace == namespace)
            and (not verbs or call.verb in verbs)
            and (leases or call.resource != "leases")
            and (watches or call.verb != "watch")
        ]

    def count(
        self,
        *,
        since: int = 0,
        user_agent: str = "",
        namespace: str | None = None,
        verbs: Sequence[str] = (),
        leases: bool = False,
        watches: bool = False,
    ) -> dict[tuple[str, str], int]:
        """Return the number of calls for each verb and resource, chosen as by `calls`."""
        chosen = self.calls(
            since=since, user_agent=user_agent, namespace=namespace, verbs=verbs, leases=leases, watches=watches
        )
        return dict(collections.Counter((call.verb, call.resource) for call in chosen))

    def _settle(self) -> None:
        """Read until a call made now shows up; the log keeps the order in which calls ended, nearly."""
        path = f"/version?settle={uuid.uuid4()}"
        self._api.get(path)
        wait_until(
            lambda: self._read(until=path),
            what=f"a call to show up in {self._log}",
            within=_SETTLE_SECONDS,
            pause=0.005,
        )

    def _read(self, *, until: str) -> bool:
        """Read new entries; return whether the call `until` was among them (it is not kept)."""
        seen = False
        for line in self._new_lines():
            event = orjson.loads(line)
            if event["requestURI"] == until:
                seen = True
            elif not event["requestURI"].startswith("/version?settle=") and not self._is_end_of_watch(event):
                self._calls.append(_call(event))
        return seen

    def _new_lines(self) -> list[bytes]:
        content = self._file.read()
        if not content and self._was_rotated():
            # The rest of the old file was written after the last read.
            content = self._file.read()
            self._file.close()
            self._file = self._log.open("rb")
            content += self._file.read()
        *lines, self._rest = (self._rest + content).split(b"\n")
        return lines

    def _was_rotated(self) -> bool:
        try:
            return self._log.stat().st_ino != _inode(self._file)
        except FileNotFoundError:
            return False

    def _is_end_of_watch(self, event: dict[str, Any]) -> bool:
        """Whether the event is the second one of a watch, which has one at its start and one at its end."""
        if event["stage"] == "ResponseStarted":
            self._open_watches.add(event["auditID"])
            return False
        known = event["auditID"] in self._open_watches
        self._open_watches.discard(event["auditID"])
        return known


def _inode(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_ino


def _call(event: dict[str, Any]) -> Call:
    target = event.get("objectRef") or {}
    resource = target.get("resource") or event["requestURI"].partition("?")[0]
    if target.get("subresource"):
        resource += "/" + target["subresource"]
    return Call(
        user_agent=event.get("userAgent") or "",
        user=event["user"].get("username") or "",
        verb=event["verb"],
        resource=resource,
        group=target.get("apiGroup") or "",
        namespace=target.get("namespace") or "",
        name=target.get("name") or "",
        status=(event.get("responseStatus") or {}).get("code") or 0,
        uri=event["requestURI"],
        event=event,
    )
