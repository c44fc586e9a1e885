"""Versions of Kubernetes that seeds and Shoots may have."""

import pytest

from gardener.garden.supported_versions import Support, support, unsupported_text


@pytest.mark.parametrize(
    ("version", "found"),
    [
        ("v1.28.0", Support.TESTED),
        ("v1.36.3", Support.TESTED),
        ("v1.30.2+vendor", Support.TESTED),
        ("v1.30.2-vendor.1", Support.TESTED),
        ("v1.37.0", Support.NEWER),
        ("v2.0.0", Support.NEWER),
        ("v1.27.16", Support.NONE),
        ("v0.36.0", Support.NONE),
        ("nonsense", Support.NONE),
        ("", Support.NONE),
    ],
)
def test_older_versions_are_refused_and_newer_ones_are_not_known(version: str, found: Support) -> None:
    assert support(version) is found


def test_the_text_of_a_refusal_is_the_originals() -> None:
    assert unsupported_text("v1.27.1") == (
        'error discovering kubernetes version: unsupported kubernetes version "v1.27.1"'
    )
