"""The manifest of the plugin for krew."""

from typing import Any

from kubectl.mr.krew import entry, manifest, merged

URI, HOME = "https://example.com/kubectl-mr.tar.gz", "https://example.com"


def one(system: str, *, sha256: str = "0" * 64) -> dict[str, Any]:
    return entry(system, "amd64", uri=URI, sha256=sha256)


def test_the_manifest_has_what_krew_demands() -> None:
    made = manifest([one("linux"), one("darwin")], release="v1.2.3", homepage=HOME)
    assert made["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2"
    assert made["kind"] == "Plugin"
    assert made["metadata"] == {"name": "mr"}
    spec = made["spec"]
    assert spec["version"] == "v1.2.3"
    assert len(spec["shortDescription"]) <= 50
    assert [each["selector"]["matchLabels"]["os"] for each in spec["platforms"]] == ["darwin", "linux"]
    assert all({"uri", "sha256", "bin"} <= each.keys() for each in spec["platforms"])


def test_each_platform_adds_its_archive_to_those_of_the_same_release() -> None:
    found = manifest([one("darwin"), one("linux", sha256="1" * 64)], release="v1.2.3", homepage=HOME)
    new = one("linux", sha256="2" * 64)
    assert merged(found, new, release="v1.2.3") == [one("darwin"), new]
    assert merged(found, new, release="v1.2.4") == [new]
    assert merged(None, new, release="v1.2.3") == [new]
