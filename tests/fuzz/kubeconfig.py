"""Kubeconfigs out of Secrets: nothing is run, nothing is read but the file itself, nothing of its user is shown.

An even first byte: the rest is the file that a connection is made from; an odd one: it is the content of a Secret that a
token is to be put into.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import yaml

from agent.shared.token_requestor.rules import kubeconfig as written
from agent.shared.token_requestor.rules import renewal
from agent.shared.token_requestor.rules.kubeconfig import KubeconfigError
from kube.runtime.connection import TokenFile, load_kubeconfig
from kube.runtime.kubeconfig import ConfigurationError
from kube.yaml import Budget, DialectError, load

_FORBIDDEN = ("subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.system", "socket.connect", "pty.spawn")
_SHORTEST_SECRET = 12
_SECRET_FIELDS = ("token", "password", "client-key-data", "client-certificate-data")

_watched: list[str] | None = None
"""What was done while it is a list."""


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _watched is None:
        return
    if event.startswith(_FORBIDDEN):
        _watched.append(event)
    elif event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
        _watched.append(os.fsdecode(arguments[0]))


sys.addaudithook(_watch)


def target(data: bytes) -> None:
    if not data:
        return
    if data[0] % 2:
        _write(data[1:])
    else:
        _connect(data[1:])


def _connect(content: bytes) -> None:
    global _watched  # noqa: PLW0603 - audit hooks can't be taken away
    descriptor = os.memfd_create("kubeconfig")
    try:
        os.write(descriptor, content)
        path = Path(f"/proc/self/fd/{descriptor}")
        _watched = []
        try:
            connection = load_kubeconfig(path)
        except ConfigurationError as error:
            _check_message(str(error), content)
            return
        finally:
            done, _watched = _watched, None
            assert set(done) <= {str(path)}, done
        # A token file is the only one that may be named, and is read when a token is needed; it has to hold one.
        if not isinstance(connection.credentials, TokenFile):
            header = asyncio.run(connection.credentials.authorization())
            assert header is None or "\n" not in header
        assert connection.server.startswith(("https://", "http://"))
        assert isinstance(connection.authority, bytes)
    finally:
        os.close(descriptor)


def _write(content: bytes) -> None:
    try:
        changed = renewal.placed({"kubeconfig": content}, token="new", authority=b"ca")["kubeconfig"]
    except KubeconfigError as error:
        _check_message(str(error), content)
        return
    assert changed is not None
    assert renewal.token_in({"kubeconfig": changed}) == b"new"
    assert renewal.authority_in({"kubeconfig": changed}) == b"ca"
    # What was written is read in the same way by readers that keep to the rules of YAML.
    again = written.decode(changed)
    assert written.encode(again) == changed
    assert renewal.placed({"kubeconfig": changed}, token="new", authority=b"ca") == {}


def _check_message(message: str, content: bytes) -> None:
    """No error shows what is in fields that are secret."""
    for secret in _secrets(content):
        assert secret not in message, message


def _secrets(content: bytes) -> set[str]:
    try:
        document = load(content, budget=Budget(10_000))
    except (DialectError, yaml.YAMLError):
        return set()
    users = document.get("users") if isinstance(document, dict) else None
    entries = [entry for entry in users if isinstance(entry, dict)] if isinstance(users, list) else []
    fields = [user for entry in entries if isinstance(user := entry.get("user"), dict)]
    values = [user.get(name) for user in fields for name in _SECRET_FIELDS]
    return {value for value in values if isinstance(value, str) and len(value) >= _SHORTEST_SECRET}
