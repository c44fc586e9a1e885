"""What fuzzers found, and what is likely to be found: the kept corpora, and mutations of them, always the same ones.

`python -m tests.fuzz` goes on from there, guided by coverage.
"""

import pytest

from fuzz import driver

NAMES = driver.names()
MUTATIONS = 250
LARGEST = 300_000
"""Bytes of all corpora together."""


@pytest.fixture(scope="module", params=NAMES)
def fuzzed(request: pytest.FixtureRequest) -> driver.Target:
    return driver.load(request.param)


def test_what_was_kept_finds_no_defect(fuzzed: driver.Target) -> None:
    kept = fuzzed.kept()
    assert kept
    for name, data in kept.items():
        _play(fuzzed, data, name)
    for data in fuzzed.made:
        _play(fuzzed, data, "made")


def test_mutations_find_no_defect(fuzzed: driver.Target) -> None:
    inputs = [*fuzzed.kept().values(), *fuzzed.made]
    for data in driver.mutations(inputs, MUTATIONS, seed=1):
        _play(fuzzed, data, "a mutation")


def _play(fuzzed: driver.Target, data: bytes, name: str) -> None:
    try:
        fuzzed.run(data)
    except Exception as error:
        error.add_note(f"{fuzzed.name}, {name}: {data!r}")
        raise


def test_mutations_are_the_same_each_time_and_differ() -> None:
    first, again = (list(driver.mutations([b"one", b"two"], 100, seed=3)) for _ in range(2))
    assert first == again
    assert len(set(first)) > 50


def test_the_corpora_are_small_and_each_has_a_target() -> None:
    files = [path for path in driver.CORPORA.glob("*/*") if path.is_file()]
    assert sorted({path.parent.name for path in files}) == NAMES
    assert sum(path.stat().st_size for path in files) < LARGEST
