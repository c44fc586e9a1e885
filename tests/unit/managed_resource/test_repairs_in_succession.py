"""How long drift waits to be repaired, and how many repairs there are reported to have been."""

from agent.resource_manager.managed_resource.rules.repairs import Repairs
from kube.objects import Key

SYNC_PERIOD = 100.0
NAME = Key("ns", "mr")


def test_repairs_in_short_succession_are_counted_until_there_is_quiet() -> None:
    repairs, now = Repairs(longest=SYNC_PERIOD), 1000.0
    assert repairs.lately(NAME, now) == 0
    for expected in range(1, 4):
        repairs.add(NAME, now)
        assert repairs.lately(NAME, now) == expected
        now += 30
    assert repairs.lately(NAME, now + 60) == 0
    repairs.add(NAME, now + 60)
    assert repairs.lately(NAME, now + 61) == 1
    assert repairs.lately(Key("ns", "other"), now + 61) == 0


def test_who_insists_is_counted_though_repairs_wait_ever_longer_and_forgotten_when_they_cease() -> None:
    repairs, now, waited = Repairs(longest=SYNC_PERIOD), 1000.0, []
    for _ in range(20):
        waited.append(repairs.delay(NAME, now))
        now += waited[-1]
        repairs.add(NAME, now)
    assert waited == sorted(waited)
    assert waited[-1] == SYNC_PERIOD
    assert repairs.lately(NAME, now + SYNC_PERIOD) == 20
    assert repairs.lately(NAME, now + 2 * SYNC_PERIOD) == 0
