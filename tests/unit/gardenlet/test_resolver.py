"""Which host name of the seed's API server is looked up, and what becomes of the answers."""

from collections.abc import Sequence

import pytest

from agent.gardenlet.seed.network_policy.resolver import PERIOD, Resolver, host_name
from agent.gardenlet.seed.network_policy.rules.networks import Endpoint
from kit.clock import FakeClock, settle


def in_pod(host: str, port: str = "443") -> dict[str, str]:
    return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}


@pytest.mark.parametrize(
    ("server", "environment", "expected"),
    [
        ("api.example.com:6443", {}, ("api.example.com", 6443)),
        ("api.example.com", in_pod("10.0.0.1"), ("api.example.com", 443)),
        ("api.example.com", in_pod("other.example.com"), ("api.example.com", 443)),
        # Known by an address: the Endpoints alone count.
        ("10.0.0.1:443", {}, None),
        ("[fd00::1]:443", in_pod("fd00::1"), None),
        ("127.0.0.1:443", in_pod("10.0.0.1"), None),
        # Only in the Pod it has a name.
        ("10.0.0.1:443", in_pod("api.example.com", "6443"), ("api.example.com", 6443)),
        ("10.0.0.1:443", in_pod("api.example.com", ""), ("api.example.com", 443)),
        ("10.0.0.1:443", in_pod("api.example.com", "tcp://x"), ("api.example.com", 443)),
    ],
)
def test_what_is_looked_up(server: str, environment: dict[str, str], expected: tuple[str, int] | None) -> None:
    assert host_name(server, environment) == expected


async def test_only_other_addresses_are_reported() -> None:
    clock, changes = FakeClock(), []
    answers: list[Sequence[str] | Exception] = [
        OSError("no answer"),
        ["10.0.0.2", "10.0.0.1", "10.0.0.1", "fe80::1%eth0"],
        ["10.0.0.1", "10.0.0.2"],
        UnicodeError("label too long"),
        ["fd00::1"],
    ]

    async def resolve(host: str) -> Sequence[str]:
        assert host == "api.example.com"
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def changed() -> None:
        changes.append(resolver.endpoints)

    resolver = Resolver(("api.example.com", 443), changed=changed, resolve=resolve, sleep=clock.sleep)
    await resolver.start()
    await settle()
    assert resolver.endpoints is None
    while answers:
        clock.advance(PERIOD)
        await settle()
    await resolver.close()
    both, last = ((Endpoint(found, (("TCP", 443),)),) for found in (("10.0.0.1", "10.0.0.2"), ("fd00::1",)))
    assert changes == [both, last]


async def test_without_a_host_name_nothing_is_looked_up() -> None:
    async def resolve(_: str) -> Sequence[str]:
        raise AssertionError

    resolver = Resolver(None, changed=lambda: None, resolve=resolve)
    await resolver.start()
    assert resolver.endpoints == ()
    await resolver.close()
