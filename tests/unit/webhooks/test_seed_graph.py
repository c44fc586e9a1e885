"""How many refusals of gardenlets lead to reads of the API server."""

from webhooks.authorizers.seed.graph import BURST, SECONDS_EACH, Budget


def test_refusals_of_a_seed_are_confirmed_within_a_budget() -> None:
    now = 100.0
    budget = Budget(lambda: now)
    assert [budget.take("a") for _ in range(BURST + 3)] == [True] * BURST + [False] * 3
    assert budget.take("b")
    now += SECONDS_EACH
    assert [budget.take("a") for _ in range(2)] == [True, False]
    now += BURST * SECONDS_EACH
    assert [budget.take("a") for _ in range(BURST + 1)] == [True] * BURST + [False]
