"""Names for the shell. It waits for them, so they come soon or not at all, and errors are nobody's business here.

kubectl completes `kubectl mr` by a program `kubectl_complete-mr`, which gets the words so far as its arguments; the
last line that it prints says what the shell is to do with the others.
"""

import asyncio
import os
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from gardener.kinds import MANAGED_RESOURCES
from kube.client import Form, Selection
from kubectl_mr.session import Where, open_session

_NO_FILES = ":4"
_SECONDS = 2.0
_MOST = 500


def names_of_managed_resources(flags: Mapping[str, Any], incomplete: str) -> list[str]:
    where = Where(kubeconfig=flags.get("kubeconfig"), context=flags.get("context"), namespace=flags.get("namespace"))
    try:
        return sorted(name for name in asyncio.run(_names(where)) if name.startswith(incomplete) and name.isprintable())
    except Exception:  # noqa: BLE001 - no completion is the answer to whatever goes wrong
        return []


async def _names(where: Where) -> list[str]:
    async with asyncio.timeout(_SECONDS), open_session(where) as session:
        selection = Selection(namespace=session.namespace)
        page = await session.source.client.list_page(MANAGED_RESOURCES, selection, form=Form.METADATA, limit=_MOST)
        return [item["metadata"]["name"] for item in page["items"]]


def for_kubectl() -> None:
    """`kubectl_complete-mr`: by the same way as for bash."""
    from kubectl_mr.__main__ import app

    words = ["kubectl-mr", *sys.argv[1:]]
    os.environ["_KUBECTL_MR_COMPLETE"] = "complete_bash"
    os.environ["COMP_WORDS"] = shlex.join(word for word in words if word)
    os.environ["COMP_CWORD"] = str(len(words) - 1)
    try:
        app(prog_name="kubectl-mr")
    finally:
        print(_NO_FILES)
