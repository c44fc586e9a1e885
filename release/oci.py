"""Packs files: as tar archives, and as OCI artifacts in the layout that `oras`, Helm and Flux read.

The same files result in the same bytes, and so in the same digest.
"""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
EMPTY = "application/vnd.oci.empty.v1+json"


def packed(
    layer: tuple[str, bytes],
    *,
    tag: str,
    config: tuple[str, bytes] = (EMPTY, b"{}"),
    artifact_type: str = "",
    annotations: Mapping[str, str],
) -> tuple[bytes, str]:
    """Archive of a layout with one artifact, and the digest of that.

    Args:
        layer: media type and content.
        tag: tag by which tools find the artifact in the layout.
        config: media type and content.
        artifact_type: media type of the artifact, unless that of the configuration states it.
        annotations: annotations of the artifact.
    """
    blobs: dict[str, bytes] = {}

    def stored(media_type: str, content: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        **({"artifactType": artifact_type} if artifact_type else {}),
        "config": stored(*config),
        "layers": [stored(*layer)],
        "annotations": dict(sorted(annotations.items())),
    }
    descriptor = stored(MANIFEST, _json(manifest))
    named = {**descriptor, "annotations": {"org.opencontainers.image.ref.name": tag}}
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [named]}
    layout = {"oci-layout": _json({"imageLayoutVersion": "1.0.0"}), "index.json": _json(index)}
    return archive({**layout, **blobs}), str(descriptor["digest"])


def digest_in(layout: Path) -> str:
    """Digest of the only image in the archive of a layout."""
    with tarfile.open(layout) as tar:
        index = tar.extractfile("index.json")
        assert index is not None  # tarfile raises KeyError for a missing file; None would be a directory
        (image,) = json.load(index)["manifests"]
    return str(image["digest"])


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def compressed(files: Mapping[str, bytes], *, executable: str = "") -> bytes:
    """Archive for `tar -xzf`."""
    return gzip.compress(archive(files, executable=executable), mtime=0)


def archive(files: Mapping[str, bytes], *, executable: str = "") -> bytes:
    """Archive in a fixed order, without owners and times."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path, content in sorted(files.items()):
            member = tarfile.TarInfo(path)
            member.size = len(content)
            member.mode = 0o755 if path == executable else 0o644
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
