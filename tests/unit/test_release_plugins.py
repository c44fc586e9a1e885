"""The manifests of the plugins for krew."""

from typing import Any

import pytest

from release.plugins import _PLUGINS, entry, manifest, merged, programs

URI, HOME = "https://example.com/kubectl-plugins.tar.gz", "https://example.com"


def one(system: str, *, sha256: str = "0" * 64) -> dict[str, Any]:
    return entry(system, "amd64", uri=URI, sha256=sha256)


@pytest.mark.parametrize("plugin", _PLUGINS)
def test_a_manifest_has_what_krew_demands(plugin: str) -> None:
    made = manifest(plugin, [one("linux"), one("darwin")], release="v1.2.3", homepage=HOME)
    assert made["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2"
    assert made["kind"] == "Plugin"
    assert made["metadata"] == {"name": plugin}
    spec = made["spec"]
    assert spec["version"] == "v1.2.3"
    assert len(spec["shortDescription"]) <= 50
    assert [each["selector"]["matchLabels"]["os"] for each in spec["platforms"]] == ["darwin", "linux"]
    assert all({"uri", "sha256", "bin"} <= each.keys() for each in spec["platforms"])


def test_each_platform_adds_its_archive_to_those_of_the_same_release() -> None:
    found = manifest("mr", [one("darwin"), one("linux", sha256="1" * 64)], release="v1.2.3", homepage=HOME)
    new = one("linux", sha256="2" * 64)
    assert merged(found, new, release="v1.2.3") == [one("darwin"), new]
    assert merged(found, new, release="v1.2.4") == [new]
    assert merged(None, new, release="v1.2.3") == [new]


def test_all_plugins_are_packed_with_their_completions() -> None:
    names = {f"{program}-{plugin}" for program in ("kubectl", "kubectl_complete") for plugin in _PLUGINS}
    assert programs().keys() == names
