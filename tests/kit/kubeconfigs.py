"""Kubeconfigs with one user and one cluster."""

import base64
from pathlib import Path
from typing import Any

import yaml


def kubeconfig(user: Any = None, *, cluster: Any = None, server: str = "https://host:6443") -> dict[str, Any]:
    """Context `x` of user `u` and cluster `c`; `cluster` has its further fields."""
    return {
        "clusters": [{"name": "c", "cluster": {"server": server, **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }


def with_token_file(server: str, *, ca: bytes, file: Path) -> dict[str, Any]:
    """Args: ca: PEM."""
    authority = {"certificate-authority-data": base64.b64encode(ca).decode()}
    return kubeconfig({"tokenFile": str(file)}, cluster=authority, server=server)


def written(path: Path, content: Any) -> Path:
    """Args: content: a document, or a text or bytes as they are."""
    text = content if isinstance(content, str | bytes) else yaml.safe_dump(content)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path
