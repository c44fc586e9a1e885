"""How long drift waits to be put right, and how many repairs there are told to have been."""

from agent.managed_resource.plans import Memory

SYNC_PERIOD = 100.0


def lately(memory: Memory, now: float) -> int:
    return memory.repairs_lately(now, longest=SYNC_PERIOD)


def test_repairs_in_short_succession_are_counted_until_there_is_quiet() -> None:
    memory, now = Memory(), 1000.0
    assert lately(memory, now) == 0
    for expected in range(1, 4):
        memory.repaired(now)
        assert lately(memory, now) == expected
        now += 30
    assert lately(memory, now + 60) == 0
    memory.repaired(now + 60)
    assert lately(memory, now + 61) == 1


def test_who_insists_is_counted_though_repairs_wait_ever_longer_and_forgotten_when_they_cease() -> None:
    memory, now, waited = Memory(), 1000.0, []
    for _ in range(20):
        waited.append(memory.patience(now))
        now += min(waited[-1], SYNC_PERIOD)
        memory.repaired(now)
    assert waited == sorted(waited)
    assert waited[-1] > SYNC_PERIOD
    assert lately(memory, now + SYNC_PERIOD) == 20
    assert lately(memory, now + 2 * SYNC_PERIOD) == 0
