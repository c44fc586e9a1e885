"""Paths of credentials: where Gardener's own API server issues them, and where this one does."""

import re

from gardener.api.garden import AUTHENTICATION_API
from gardener.rights.everybody import ISSUED

ROOT = f"/apis/{AUTHENTICATION_API}"
TOKEN = "token"
LOGIN = f"{ROOT}/login"
"""Base path for clients whose kubeconfig has it as part of `server`, such as gardenlogin's."""
_ORIGINAL = re.compile(
    "|".join(
        f"/apis/{re.escape(kind.api_version)}(/namespaces/[^/]+/{kind.plural}/[^/]+/{subresource})"
        for kind, subresource in ISSUED
    )
)


def issued_at(path: str) -> str:
    """Return the path below `ROOT` for one of the original's API server; empty if it issues no credentials."""
    found = _ORIGINAL.fullmatch(path)
    return f"{ROOT}{found[found.lastindex or 0]}" if found else ""
