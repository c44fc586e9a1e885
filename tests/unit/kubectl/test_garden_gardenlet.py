"""Requests to a gardenlet."""

import socket

import pytest

from gardener.api.garden import SHOOTS
from kube.objects import Key
from kubectl.errors import UserError
from kubectl.garden import gardenlet


async def test_a_suspended_gardenlet_delays_a_command_only_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gardenlet, "_FLOWS_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        async with gardenlet.gardenlet_at(f"http://127.0.0.1:{silent.getsockname()[1]}") as found:
            with pytest.raises(UserError, match="the gardenlet does not answer in time"):
                await found.flows(SHOOTS, Key("garden-dev", "rose"))
