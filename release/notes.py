"""The notes of a release: its files, missing parts with reasons, installation, and changes."""

import re
from collections.abc import Iterable, Mapping

from release.plan import Release

_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_KINDS = {  # the first matching pattern counts
    r".*-image-.*\.oci\.tar": "the image, for `skopeo copy oci-archive:...`, `oras copy --from-oci-layout`",
    r".*-manifests-.*\.tar\.gz": "the directory `manifests/` for `kubectl apply -k`",
    r"resource-manager-[\d.]+\.tgz": "the chart for Helm of the resource manager without Gardener",
    r"garden-[\d.]+\.tgz": "the chart of a garden's API and admission server",
    r"garden-controllers-[\d.]+\.tgz": "the chart of its controller manager and scheduler",
    r"gardenlet-[\d.]+\.tgz": "the chart of a seed's gardenlet",
    r"kubectl-plugins-.*\.tar\.gz": "the plugins of kubectl for krew",
    r".*\.yaml": "a manifest for krew",
    r"kubectl-.*": "a plugin of kubectl, one file with Python in it",
    r"gardener_extension_kit-.*\.whl": "the library for extensions of your own",
    r"gardener_.*\.whl": "all programs as a Python package",
    r"kubernetes_controller_kit-.*\.whl": "the library that they are built on, for controllers of your own",
    r"documentation-.*\.tar\.gz": "the documentation as a site",
    r".*\.tar\.gz": "its source",
    r".*\.cdx\.json": "bill of materials of image and Python package, in CycloneDX",
}


def notes(release: Release, files: Iterable[str], *, left_out: Mapping[str, str], changelog: str) -> str:
    """The notes in Markdown.

    Args:
        release: the release.
        files: names of all files.
        left_out: missing parts of the release, each with the reason.
        changelog: changelog of the project.
    """
    parts = [f"# Resource manager {release.tag}", f"Made from commit {release.revision}."]
    parts.append("\n".join(f"- `{name}`: {_about(name)}" for name in sorted(files)))
    if left_out:
        parts += ["## Left out", "\n".join(f"- {what}: {why}" for what, why in left_out.items())]
    return (
        "\n\n".join([*parts, "## Installing", _installing(release), "## Changes", changes(changelog, release)]) + "\n"
    )


def _about(name: str) -> str:
    return next(about for pattern, about in _KINDS.items() if re.fullmatch(pattern, name))


def _installing(release: Release) -> str:
    repository = release.image if release.registry else f"registry.example.com/{release.image}"
    named = "" if release.registry else f" --set image.repository={repository}"
    push = f"skopeo copy oci-archive:{release.image_file} docker://{repository}:{release.tag}\n" if release.base else ""
    chart = release.chart_file("resource-manager")
    install = f"helm install resource-manager {chart} -n resource-manager --create-namespace{named}\n"
    return f"```\n{push}{install}```"


def changes(changelog: str, release: Release) -> str:
    """Section of the changelog about the version, or else about unreleased changes, without links to files."""
    headings = r"^## \[?([^\]\n]+?)\]?(?: - [^\n]*)?\n(.*?)(?=^## |\Z)"
    sections = dict(re.findall(headings, changelog, re.MULTILINE | re.DOTALL))
    found = sections.get(release.version) or sections.get("Unreleased", "")
    return _LINK.sub(r"\1", found).strip()
