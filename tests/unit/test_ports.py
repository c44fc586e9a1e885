"""Ports for servers of this computer."""

import socket
import tempfile
from pathlib import Path

import pytest

from localprocesses import ports
from localprocesses.local import HOST, LocalProcessError


@pytest.fixture(autouse=True)
def no_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_none_is_given_twice_and_none_that_clients_get() -> None:
    first, second = ports.free_ports(20), ports.free_ports(20)
    assert len({*first, *second}) == 40
    assert max(*first, *second) < 32_768


def test_one_with_a_server_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    port = ports.free_port()
    monkeypatch.setattr(ports, "_PORTS", range(port, port + 1))
    monkeypatch.setattr(ports, "_NOTED_SECONDS", 0.0)
    assert ports.free_port() == port
    with (
        socket.create_server((HOST, port)),
        pytest.raises(LocalProcessError, match=f"no free port from {port} to {port}"),
    ):
        ports.free_port()
