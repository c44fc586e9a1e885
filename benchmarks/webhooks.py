"""Cost of admission: CPU, latency and memory of the server under load, against a bare handler in the same run.

Both servers are loaded by turns, some seconds each, so that other work on the machine falls on both; the median of the
rounds counts.
"""

import asyncio
import json
import re
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.program import Process, admission_server, bare_server, make_certificate
from benchmarks.report import Table, number
from benchmarks.reviews import NAMESPACE, SERVICE_ACCOUNT, SPREAD_NAMESPACE_ANNOTATIONS, WEBHOOKS, Load, loads
from devcluster.cluster import Cluster
from localprocesses.local import LocalProcessError

COLUMNS = (
    *("webhook", "at once", "requests/s", "CPU us (bare)", "ratio"),
    *("p50 ms", "p99 ms (bare)", "ratio", "RSS MiB"),
)
_UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0}


@dataclass(frozen=True, slots=True)
class Round:
    """Result of one server in some seconds of load."""

    rate: float
    cpu_us: float
    p50_ms: float
    p99_ms: float


async def measure(*, seconds: float, rounds: int) -> Table:
    demand_wrk()
    async with Cluster() as cluster:
        with tempfile.TemporaryDirectory(prefix="webhooks-") as name:
            directory = Path(name)
            make_certificate(directory)
            await asyncio.to_thread(prepare, cluster)
            with bare_server(directory) as bare, admission_server(cluster, directory, WEBHOOKS) as server:
                for each in (bare, server):
                    each.start()
                    await asyncio.to_thread(each.wait_until_ready)
                rows = [
                    row
                    for load in loads()
                    for row in await asyncio.to_thread(
                        compared, bare, server, load, directory=directory, seconds=seconds, rounds=rounds
                    )
                ]
    sizes = sorted(len(load.body) for load in loads())
    note = (
        f"Reviews of {sizes[0]} to {sizes[-1]} bytes. CPU: of the server's process for a request. *bare*: a handler of "
        "the same libraries that parses a review and answers with one patch. "
        f"Medians of {rounds} rounds of {seconds:g} s for each of both, by turns."
    )
    return Table("Admission", COLUMNS, rows, [note])


def demand_wrk() -> None:
    """Check that wrk is installed.

    Raises:
        LocalProcessError: it is missing.
    """
    if shutil.which("wrk") is None:
        raise LocalProcessError("wrk is missing, which makes the load; it is a package of Debian: apt-get install wrk")


def prepare(cluster: Cluster) -> None:
    """Create the objects that the webhooks need to know about those in their requests."""
    namespace = {"name": NAMESPACE, "annotations": SPREAD_NAMESPACE_ANNOTATIONS}
    cluster.api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": namespace})
    account = {"name": SERVICE_ACCOUNT, "namespace": NAMESPACE}
    cluster.api.create(
        f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account, "automountServiceAccountToken": False},
    )


def compared(
    bare: Process,
    server: Process,
    load: Load,
    *,
    directory: Path,
    seconds: float,
    rounds: int,
    at_once: Sequence[int] = (1, 16),
) -> list[list[str]]:
    """Compare the servers; a row for each number of connections, in `COLUMNS`."""
    script = directory / "load.lua"
    script.write_text(_script(load.body))
    rows = []
    for connections in at_once:
        both = [
            tuple(_round(each, load, script, connections=connections, seconds=seconds) for each in (bare, server))
            for _ in range(rounds)
        ]
        rows.append(_row(load, connections, *zip(*both, strict=True), memory=server.resident_mib()))
    return rows


def _row(load: Load, connections: int, bare: Sequence[Round], served: Sequence[Round], *, memory: float) -> list[str]:
    def both(name: str) -> tuple[float, float, float]:
        ours, theirs = (statistics.median(getattr(each, name) for each in side) for side in (served, bare))
        return ours, theirs, ours / theirs

    cpu, bare_cpu, cpu_ratio = both("cpu_us")
    p99, bare_p99, p99_ratio = both("p99_ms")
    return [
        *(load.webhook, str(connections), number(both("rate")[0], 0)),
        *(f"{cpu:.0f} ({bare_cpu:.0f})", number(cpu_ratio, 2), number(both("p50_ms")[0], 2)),
        *(f"{p99:.1f} ({bare_p99:.1f})", number(p99_ratio, 2), number(memory, 0)),
    ]


def _script(body: bytes) -> str:
    quoted = json.dumps(body.decode(), ensure_ascii=False).replace("\\/", "/")
    return f'wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\nwrk.body = {quoted}\n'


def _round(server: Process, load: Load, script: Path, *, connections: int, seconds: float) -> Round:
    before = server.cpu_seconds()
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "--latency", "-s", str(script)]
    command.append(server.url + load.path)
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=seconds + 60)
    cpu = server.cpu_seconds() - before
    found = re.search(r"(\d+) requests in", done.stdout)
    if done.returncode or found is None or not int(found[1]) or "Non-2xx" in done.stdout:
        raise LocalProcessError(f"load on {load.path} failed: {done.stdout}{done.stderr}")
    rate = re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)
    return Round(
        rate=float(rate[1]) if rate else 0.0,
        cpu_us=cpu / int(found[1]) * 1e6,
        p50_ms=_milliseconds(done.stdout, "50%"),
        p99_ms=_milliseconds(done.stdout, "99%"),
    )


def _milliseconds(output: str, name: str) -> float:
    found = re.search(rf"{name}\s+([\d.]+)(us|ms|s)", output)
    if found is None:
        raise LocalProcessError(f"wrk reports no latency: {output}")
    return float(found[1]) * _UNITS[found[2]]
