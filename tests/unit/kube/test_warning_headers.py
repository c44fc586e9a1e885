"""What an API server warns of is read within bounds."""

import pytest

from kube.runtime.answers import LONGEST_WARNING, MOST_WARNINGS, warning_texts


@pytest.mark.parametrize(
    ("headers", "texts"),
    [
        ([], []),
        (['299 - "unknown field \\"spec.replica\\""'], ['unknown field "spec.replica"']),
        (['299 - "a"', '299 - "b"', '299 - "a"'], ["a", "b"]),
        (['299 - "a", 299 proxy "b, c"'], ["a", "b, c"]),
        (['299 - "a" "Wed, 21 Oct 2015 07:28:00 GMT"'], ["a"]),
        (['299 - "back\\\\slash"'], ["back\\slash"]),
        (['299 - "two\n lines\x1b[31m and a \udc80"'], ["two lines [31m and a"]),
        (['199 - "of another kind"', "no warning", '299 - "', '299 "a"', '299 - ""'], []),
        (['299 - "' + "x" * 1000 + '"'], ["x" * (LONGEST_WARNING - 1) + "…"]),
        (['299 - "' + "x" * 100_000 + '"'], []),
        ([f'299 - "{number}"' for number in range(1000)], [str(number) for number in range(MOST_WARNINGS)]),
        ([", ".join(f'299 - "{number}"' for number in range(1000))], [str(number) for number in range(MOST_WARNINGS)]),
    ],
)
def test_warnings_are_read_within_bounds(headers: list[str], texts: list[str]) -> None:
    assert warning_texts(headers) == texts
