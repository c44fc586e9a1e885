"""Attacks on the webhook server by clients that reach its port, without credentials.

    python -m tests.attacks.webhooks [NAME …]

Each attack has a server of its own, a real process, which needs no cluster for these webhooks. Meanwhile an innocent
client, a process too, queries again and again, each time over a new connection, so that handshakes count. The table has
the most memory that the server ever had, the longest time that the innocent waited, and the server's time of CPU.
"""

import asyncio
import contextlib
import json
import os
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kit.processes.agent import PROJECT
from kit.processes.webhooks import HOST, POD_REVIEW, SECCOMP, WebhookProcess, trusting
from localprocesses.pki import Authority, kubeconfig, token_credentials

WEBHOOKS = {"seccompProfile": {"enabled": True}, "kubernetesServiceHost": {"enabled": True, "host": "api.example.com"}}
SERVICE_HOST = "/webhooks/kubernetes-service-host"

BODY = 6_900_000
_MANIFEST = PROJECT / "manifests" / "base" / "webhooks" / "webhooks.yaml"
_TICK = os.sysconf("SC_CLK_TCK")
_QUIET_SECONDS = 2.0

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


# --- what is sent


def filled(item: bytes, size: int, field: bytes = b'"containers":[') -> bytes:
    """A review of so many bytes, nearly all of it a list of the same."""
    before, found, after = POD_REVIEW.replace(b" ", b"").partition(b'"containers":[{')
    assert found
    rest = b'],"was":[{' + after
    count = (size - len(before) - len(field) - len(rest)) // (len(item) + 1)
    return before + field + b",".join([item] * count) + rest


def header(path: str, length: int) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n".encode()


async def connect(port: int) -> Streams:
    return await asyncio.open_connection(HOST, port, ssl=trusting())


async def ask(port: int, path: str, body: bytes) -> None:
    """One request, and its answer."""
    reader, writer = await connect(port)
    try:
        writer.write(header(path, len(body)) + body)
        await writer.drain()
        await reader.readuntil(b"\r\n\r\n")
    finally:
        writer.transport.abort()


async def begin(port: int, body: bytes) -> Streams:
    """A request of which the last byte does not come."""
    reader, writer = await connect(port)
    try:
        writer.write(header(SECCOMP, len(body)) + body[:-1])
        await writer.drain()
    except BaseException:
        writer.transport.abort()
        raise
    return reader, writer


async def settled(attempts: list[Awaitable[object]]) -> int:
    """How many of them the server did not cut off."""
    done = await asyncio.gather(*(asyncio.wait_for(each, 120) for each in attempts), return_exceptions=True)
    for each in done:
        if isinstance(each, BaseException) and not isinstance(
            each, (OSError, TimeoutError, asyncio.IncompleteReadError)
        ):
            raise each
    return sum(not isinstance(each, BaseException) for each in done)


# --- attacks


async def values(port: int) -> None:
    """Millions of values in one body, three times: objects that each need a change, and ones that need none."""
    for item, path in ((b"{}", SERVICE_HOST), (b"{}", SECCOMP), (b"[]", SECCOMP)):
        await settled([ask(port, path, filled(item, BODY))])


async def keep_open(count: int, opening: Callable[[], Awaitable[Streams]]) -> None:
    """So many connections, a hundred at a time, of which nothing more comes for some seconds."""
    opened: list[Streams] = []

    async def open_one() -> None:
        opened.append(await opening())

    try:
        for begun in range(0, count, 100):
            await settled([open_one() for _ in range(min(100, count - begun))])
        await asyncio.sleep(5)
    finally:
        for _, writer in opened:
            writer.transport.abort()


async def held(port: int) -> None:
    """160 requests that are held open before their end."""
    await keep_open(160, lambda: begin(port, b"x" * BODY))


async def broken_off(port: int) -> None:
    """Three rounds of 160 requests that are broken off before their end."""

    async def break_off() -> None:
        _, writer = await begin(port, b"x" * BODY)
        writer.transport.abort()

    for _ in range(3):
        for _ in range(8):
            await settled([break_off() for _ in range(20)])
        await asyncio.sleep(_QUIET_SECONDS)


async def at_the_limit(port: int) -> None:
    """A hundred requests at once that stay below all limits, but are as costly as these let them be."""
    bodies = [filled(b"{}", 250_000), filled(b"[]", 250_000, b'"others":['), filled(b'{"name":"n"}', 600_000)]
    for _ in range(2):
        await settled([ask(port, SERVICE_HOST, bodies[number % len(bodies)]) for number in range(50)])


async def idle(port: int) -> None:
    """More connections than there may be, which report nothing."""
    await keep_open(1300, lambda: connect(port))


async def handshakes(port: int) -> None:
    """More connections than there may be, which do not even begin with TLS."""
    await keep_open(2000, lambda: asyncio.open_connection(HOST, port))


async def few_files(port: int) -> None:
    """Idle connections in a process that may have 64 files open."""
    await keep_open(160, lambda: connect(port))


ATTACKS: Mapping[str, Callable[[int], Awaitable[None]]] = {
    "values": values,
    "held": held,
    "broken off": broken_off,
    "at the limit": at_the_limit,
    "idle": idle,
    "handshakes": handshakes,
    "few files": few_files,
}
_PREFIXES: Mapping[str, tuple[str, ...]] = {"few files": ("sh", "-c", 'ulimit -n 64; exec "$@"', "sh")}


# --- measuring


@dataclass(frozen=True, slots=True)
class Measured:
    name: str
    before: float
    peak: float
    after: float
    longest: float
    requests: int
    failures: int
    cpu: float


def memory(pid: int, name: str) -> float:
    """MiB, by a name of /proc/PID/status."""
    (kilobytes,) = re.findall(rf"^{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(kilobytes) / 1024


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


@contextlib.asynccontextmanager
async def server(prefix: tuple[str, ...]) -> AsyncIterator[WebhookProcess]:
    """One that queries no API server. Args: prefix: a command that runs it."""
    bundle = Authority.create("stranger").bundle.decode()
    nowhere = kubeconfig(name="nowhere", url=f"https://{HOST}:1", ca=bundle, user=token_credentials("none"))
    with tempfile.NamedTemporaryFile("w", prefix="nowhere-") as file:
        file.write(nowhere)
        file.flush()
        process = WebhookProcess(WEBHOOKS, kubeconfig=Path(file.name))
        process.prefix = prefix
        with process:
            await process.until_ready()
            yield process


async def measure(name: str) -> Measured:
    async with server(_PREFIXES.get(name, ())) as process:
        before, cpu = memory(process.pid, "VmRSS"), cpu_seconds(process.pid)
        asking = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.attacks.innocent",
            str(process.port),
            cwd=PROJECT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            await asyncio.sleep(1)
            await ATTACKS[name](process.port)
            await asyncio.sleep(_QUIET_SECONDS)
            reported, _ = await asyncio.wait_for(asking.communicate(b""), 2 * 60)
        finally:
            if asking.returncode is None:
                asking.kill()
        longest, requests, failures = json.loads(reported)
        pid = process.pid
        return Measured(
            name,
            before=before,
            peak=memory(pid, "VmHWM"),
            after=memory(pid, "VmRSS"),
            longest=longest,
            requests=requests,
            failures=failures,
            cpu=cpu_seconds(pid) - cpu,
        )


def main(names: list[str]) -> int:
    unknown = set(names) - set(ATTACKS)
    if unknown:
        print(f"{(__doc__ or '').strip()}\n\nAttacks: {', '.join(ATTACKS)}", file=sys.stderr)
        return 2
    limit = re.findall(r"limits:\s+memory: (\S+)", _MANIFEST.read_text())
    print(f"The container's limit is {limit[0]}.\n")
    print("| Attack | MiB before | at most | after | longest innocent answer, s | innocent requests, failed | CPU, s |")
    print("|---|---|---|---|---|---|---|")
    for name in names or ATTACKS:
        of = asyncio.run(measure(name))
        print(
            f"| {of.name} | {of.before:.0f} | {of.peak:.0f} | {of.after:.0f} | {of.longest:.2f} "
            f"| {of.requests}, {of.failures} | {of.cpu:.1f} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
