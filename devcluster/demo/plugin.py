"""Plugins of kubectl in the demos: what somebody types, run without kubectl."""

import os
import shlex
import subprocess
import sys

from devcluster.cluster import Cluster
from localprocesses.errors import LocalProcessError

_SECONDS = 60.0
_COLUMNS = "110"
_MODULES = {"mr": "kubectl.mr", "gardener": "kubectl.garden"}


def output(cluster: Cluster, command: str, *, code: int = 0) -> str:
    """What a command prints, such as `kubectl mr get`; raises LocalProcessError if it ends with another code."""
    _, plugin, *arguments = shlex.split(command)
    try:
        done = subprocess.run(
            [sys.executable, "-m", _MODULES[plugin], *arguments],
            env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "COLUMNS": _COLUMNS, "NO_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LocalProcessError(f"{command} takes longer than {_SECONDS:.0f} s") from error
    if done.returncode != code:
        raise LocalProcessError(f"{command} ended with {done.returncode}: {done.stdout}")
    return done.stdout.rstrip()
