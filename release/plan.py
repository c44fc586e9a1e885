"""Names of the parts of a release, and the commands of other programs that make and publish it."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

Command = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A release.

    Attributes:
        version: such as `0.1.0`.
        revision: the commit.
        registry: prefix of the repositories, such as `registry.example.com/team`; empty if none is named.
        base: base image, with its digest; empty if no image is built.
        go: image with Go, with its digest, to add `helm` to the image; empty for an image without it.
    """

    version: str
    revision: str
    registry: str
    base: str
    go: str = ""

    @property
    def tag(self) -> str:
        return f"v{self.version}"

    def repository(self, name: str) -> str:
        return f"{self.registry}/{name}" if self.registry else name

    @property
    def image(self) -> str:
        """Repository of the image."""
        return self.repository("resource-manager")

    @property
    def image_file(self) -> str:
        return f"resource-manager-image-{self.tag}.oci.tar"

    @property
    def manifests(self) -> str:
        """Repository of the manifests."""
        return self.repository("resource-manager-manifests")

    @property
    def manifests_file(self) -> str:
        return f"resource-manager-manifests-{self.tag}.tar.gz"

    def chart(self, name: str) -> str:
        """Repository of a chart. Helm wants one that ends with the chart's name."""
        return self.repository(f"charts/{name}")

    def chart_file(self, name: str) -> str:
        """File name that Helm gives a chart."""
        return f"{name}-{self.version}.tgz"


PUBLISHERS = ("cosign", "oras")
WITH_HELM = "gardenlet"
"""Target in the Dockerfile."""


def build_image(release: Release, builder: str, *, context: Path, archive: Path) -> tuple[Command, ...]:
    """Commands that build an archive in OCI's layout, with the same bytes from the same files: times are those of the
    epoch.

    Args:
        release: the release.
        builder: `buildah` or `docker`.
        context: directory with the Dockerfile.
        archive: path of the archive.
    """
    given = {"BASE": release.base, "VERSION": release.tag, "REVISION": release.revision}
    target: Command = ()
    if release.go:
        given, target = {**given, "GO": release.go}, ("--target", WITH_HELM)
    name = f"{release.image}:{release.tag}"
    if builder == "buildah":
        return (
            ("buildah", "bud", *_arguments(given), *target, "--timestamp", "0", "--tag", name, str(context)),
            ("buildah", "push", name, f"oci-archive:{archive}:{release.tag}"),
        )
    output = f"type=oci,dest={archive},name={name},rewrite-timestamp=true"
    of_epoch = _arguments({**given, "SOURCE_DATE_EPOCH": "0"})
    return (("docker", "buildx", "build", *of_epoch, *target, "--output", output, str(context)),)


def _arguments(given: dict[str, str]) -> Iterable[str]:
    for name, value in given.items():
        yield from ("--build-arg", f"{name}={value}")


def push(layout: Path, tag: str, repository: str) -> Command:
    return ("oras", "copy", "--from-oci-layout", f"{layout}:{tag}", f"{repository}:{tag}")


def sign(repository: str, digest: str) -> Command:
    return ("cosign", "sign", "--yes", f"{repository}@{digest}")


def attest(repository: str, digest: str, bill: Path) -> Command:
    """Command that attaches a bill of materials, signed."""
    kind = ("--type", "cyclonedx", "--predicate", str(bill))
    return ("cosign", "attest", "--yes", *kind, f"{repository}@{digest}")
