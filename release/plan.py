"""What a release is called, and the commands that need more than this computer has."""

from dataclasses import dataclass
from pathlib import Path

Command = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A release.

    Attributes:
        version: such as `0.1.0`.
        revision: the commit.
        registry: where repositories are, such as `registry.example.com/team`.
        base: the image to build on, with its digest.
    """

    version: str
    revision: str
    registry: str
    base: str

    @property
    def tag(self) -> str:
        return f"v{self.version}"

    @property
    def image(self) -> str:
        """The repository."""
        return f"{self.registry}/resource-manager"

    @property
    def manifests(self) -> str:
        """The repository."""
        return f"{self.registry}/resource-manager-manifests"


TOOLS = ("docker", "cosign", "oras")
DIGEST = "sha256:<digest>"
"""In a dry run."""


def build_image(release: Release, metadata: Path) -> Command:
    """Builds and pushes. The same bytes from the same files: times are those of the epoch.

    Args: metadata: where the digest is written to.
    """
    return (
        *("docker", "buildx", "build", "--build-arg", f"BASE={release.base}"),
        *("--build-arg", f"VERSION={release.tag}", "--build-arg", f"REVISION={release.revision}"),
        *("--build-arg", "SOURCE_DATE_EPOCH=0"),
        *("--output", f"type=image,name={release.image}:{release.tag},push=true,rewrite-timestamp=true"),
        *("--metadata-file", str(metadata), "."),
    )


def push_manifests(release: Release, layout: Path) -> Command:
    source = f"{layout}:{release.tag}"
    return ("oras", "copy", "--from-oci-layout", source, f"{release.manifests}:{release.tag}")


def sign(repository: str, digest: str) -> Command:
    return ("cosign", "sign", "--yes", f"{repository}@{digest}")


def attest(repository: str, digest: str, bill: Path) -> Command:
    """Attaches a bill of materials, signed."""
    kind = ("--type", "cyclonedx", "--predicate", str(bill))
    return ("cosign", "attest", "--yes", *kind, f"{repository}@{digest}")
