"""What the identity of the source cluster is, by configuration and ConfigMap."""

import pytest

from agent.resource_manager.bootstrap import BootstrapError, identity_in, must_be_read
from kube.objects import Object

WITH_KEY = {"data": {"cluster-identity": "landscape-seed"}}
WITHOUT_KEY = {"data": {"other": "x"}}


@pytest.mark.parametrize(
    ("configured", "expected"),
    [("", False), ("my-seed", False), ("<cluster>", True), ("<default>", True), ("<other>", False)],
)
def test_only_two_texts_make_it_be_read(configured: str, expected: bool) -> None:
    assert must_be_read(configured) is expected


@pytest.mark.parametrize(
    ("configured", "config_map", "expected"),
    [
        ("<cluster>", WITH_KEY, "landscape-seed"),
        ("<default>", WITH_KEY, "landscape-seed"),
        ("<default>", WITHOUT_KEY, ""),
        ("<default>", {}, ""),
        ("<default>", None, ""),
        ("<cluster>", {"data": {"cluster-identity": ""}}, ""),
    ],
)
def test_the_identity_is_what_the_config_map_reports(configured: str, config_map: Object | None, expected: str) -> None:
    assert identity_in(config_map, configured=configured) == expected


@pytest.mark.parametrize(
    ("config_map", "reason"),
    [
        (None, 'configmaps "cluster-identity" not found'),
        (WITHOUT_KEY, "no cluster-identity entry"),
        ({}, "no cluster-identity entry"),
    ],
)
def test_an_identity_that_has_to_be_there_and_is_not_ends_the_bootstrap(config_map: Object | None, reason: str) -> None:
    with pytest.raises(BootstrapError) as raised:
        identity_in(config_map, configured="<cluster>")
    assert str(raised.value) == (
        "failed during bootstrapping: unable to determine cluster id: "
        f"cannot determine cluster identity from configmap: {reason}"
    )
