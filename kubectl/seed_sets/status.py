"""`kubectl mss status`: the progress of a set, at once or until it is ready."""

import click

from kube.objects import key
from kube.runtime.polling import wait_while
from kubectl import options, output
from kubectl.options import seconds_of
from kubectl.seed_sets import reading
from kubectl.session import Session, on_cluster

_INTERVAL = 1.0


@click.command
@reading.name
@click.option("--watch", is_flag=True, help="Wait until all replicas are ready and updated.")
@options.timeout("1h")
@on_cluster(target=False, garden=True)
async def command(session: Session, *, name: str, watch: bool, timeout: str) -> int:
    """Exit code 0: all replicas are ready and updated, as far as the partition requires it, 1: otherwise."""
    last = ""

    async def missing() -> str:
        nonlocal last
        seed_set = await reading.seed_set_of(session, name)
        is_done, progress = reading.progress_of(seed_set)
        if progress != last:
            output.show([[f"{key(seed_set)}: {progress}"]])
            last = progress
        return "" if is_done else progress

    is_missing = await wait_while(missing, seconds=seconds_of(timeout) if watch else 0, every=_INTERVAL)
    if is_missing and watch:
        output.failed(f"not ready after {timeout}")
    return int(bool(is_missing))
