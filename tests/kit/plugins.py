"""Plugins of kubectl as a user would call them, in this process."""

from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner, Result

from devcluster.cluster import Cluster
from kubectl.mr.__main__ import app

Mr = Callable[..., Result]


def runner(cluster: Cluster, namespace: str) -> Mr:
    """Runs `kubectl mr` in a namespace; `code` is the exit code that it has to have, None: any."""

    def run(*arguments: str, code: int | None = 0, stdin: str = "", kubeconfig: Path | None = None) -> Result:
        environment = {"KUBECONFIG": str(kubeconfig or cluster.kubeconfig), "NO_COLOR": "1"}
        result = CliRunner().invoke(app, [*arguments, "-n", namespace], input=stdin, env=environment)
        assert code is None or result.exit_code == code, (result.output, result.exception)
        return result

    return run
