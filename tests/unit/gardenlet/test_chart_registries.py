"""Where a chart is in a registry, and what is believed of what helm prints."""

import pytest

from agent.gardenlet.common.charts.rules.registries import (
    Reference,
    RegistryError,
    arguments,
    problem,
    pulled_digest,
    reference,
)

DIGEST = f"sha256:{'a' * 64}"


@pytest.mark.parametrize(
    ("repository", "name", "is_near"),
    [
        ({"ref": "r.example.com/charts/c:1"}, "r.example.com/charts/c:1", False),
        ({"ref": "oci://r.example.com/c"}, "r.example.com/c:latest", False),
        ({"ref": f"127.0.0.1:5000/c:1@{DIGEST}"}, f"127.0.0.1:5000/c@{DIGEST}", True),
        ({"repository": "r.io/c", "tag": "1", "digest": DIGEST}, f"r.io/c@{DIGEST}", False),
        ({"repository": "localhost:5000/c", "tag": "1"}, "localhost:5000/c:1", True),
        ({"repository": "[::1]:5000/c", "tag": "1"}, "[::1]:5000/c:1", True),
    ],
)
def test_references(repository: dict[str, str], name: str, *, is_near: bool) -> None:
    found = reference(repository)
    assert (str(found), found.is_near) == (name, is_near)


@pytest.mark.parametrize(
    "ref", ["c:1", "charts/c:1", "r.io/", "r.io/C", "r.io/c:a/b", "r.io/c@sha256:1", "u@r.io/c", "r.io/../c"]
)
def test_what_is_no_reference(ref: str) -> None:
    with pytest.raises(RegistryError):
        reference({"ref": ref})


@pytest.mark.parametrize(
    ("version", "found"),
    [
        (DIGEST, [f"oci://r.io/c@{DIGEST}"]),
        ("1", ["oci://r.io/c", "--version", "1"]),
        ("v1.2.3-dev.1_a", ["oci://r.io/c", "--version", "v1.2.3-dev.1+a"]),
    ],
)
def test_what_helm_is_to_pull(version: str, found: list[str]) -> None:
    assert arguments(Reference("r.io", "c", version)) == found


@pytest.mark.parametrize("tag", ["latest", "1.x", "1.2.3.4", "v1-", "main", "abc1234"])
def test_tags_that_helm_takes_for_something_else(tag: str) -> None:
    with pytest.raises(RegistryError, match="set a digest, or a tag that is a version"):
        arguments(Reference("r.io", "c", tag))


def test_what_has_been_pulled() -> None:
    printed = f"Warning: x\nPulled: r.io/c:1\nDigest: {DIGEST}\nmore\n"
    assert pulled_digest(printed, Reference("r.io", "c", "1")) == DIGEST
    other = f"sha256:{'b' * 64}"
    by_digest = printed.replace(":1", f"@{other}")
    for reported, wanted in (
        (printed, "2"),
        ("", "1"),
        (f"Pulled: r.io/c:1\nDigest: {DIGEST}0\n", "1"),
        (by_digest, other),
    ):
        with pytest.raises(RegistryError):
            pulled_digest(reported, Reference("r.io", "c", wanted))


@pytest.mark.parametrize(
    ("printed", "reported"),
    [
        (
            'Error: failed: GET "https://u:p@r.io/v2?a=b": response status code 403: denied: so',
            'failed: GET "https://r.io/v2": response status code 403; give credentials for r.io in config.json of DIR',
        ),
        (
            'Error: GET "https://r.io/v2": basic credential not found',
            'GET "https://r.io/v2": basic credential not found; give credentials for r.io in config.json of DIR',
        ),
        ("Error: failed: r.io/c:1: not found", "failed: r.io/c:1: not found; correct repository, tag or digest"),
        ("Pulled: x\nError: write /x: file too large", "write /x: file too large; at most 9 bytes are fetched"),
        ("Error: status code 500: Internal", "status code 500"),
    ],
)
def test_errors_without_secrets_and_what_to_do(printed: str, reported: str) -> None:
    assert problem(printed, Reference("r.io", "c", "1"), directory="DIR", most=9) == reported
