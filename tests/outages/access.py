"""The way to the API server: certificates, CAs, tokens, kubeconfigs, names."""

import asyncio
import shutil
import subprocess
import time
from pathlib import Path

from kit.proxied import proxy_to
from localprocesses.pki import Authority
from outages.stage import NAME, Outcome, Stage


async def serving_certificate(stage: Stage, seconds: float) -> Outcome:
    mark = stage.mark()
    del seconds
    await stage.proxy.serve_as(stage.source.authority)
    return await stage.outcome(time.monotonic(), mark=mark)


async def authority(stage: Stage, seconds: float) -> Outcome:
    """First the file has both, then the API server shows a certificate of the new one, then the old one goes."""
    mark = stage.mark()
    new = Authority.create("new")
    stage.write_ca(f"{stage.source.ca}{new.bundle.decode()}")
    await asyncio.sleep(seconds)
    await stage.proxy.serve_as(new)
    ended = time.monotonic()
    stage.write_ca(new.bundle.decode())
    return await stage.outcome(ended, mark=mark)


async def token(stage: Stage, seconds: float) -> Outcome:
    """The API server refuses it for a while before there is a new one."""
    mark = stage.mark()
    await stage.expire_token()
    await stage.until_token_is_refused()
    await asyncio.sleep(seconds)
    await stage.renew_token()
    return await stage.outcome(time.monotonic(), mark=mark)


async def kubeconfig(stage: Stage, seconds: float) -> Outcome:
    """It names another address, and no server listens at the old one any more."""
    mark = stage.mark()
    async with proxy_to(stage.source) as other:
        await stage.proxy.pause()
        await asyncio.sleep(seconds)
        stage.write_kubeconfig(proxy=other)
        try:
            return await stage.outcome(time.monotonic(), mark=mark)
        finally:
            await stage.proxy.resume()


# --- names


class Names:
    """Name resolution of one process, by files of its own in place of the machine's; only where that is permitted."""

    def __init__(self, directory: Path) -> None:
        self._hosts, self._resolvers = directory / "hosts", directory / "resolv.conf"
        self._hosts.write_text(f"127.0.0.1 {NAME}\n")
        # No server answers there.
        self._resolvers.write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")

    @property
    def prefix(self) -> tuple[str, ...]:
        script = (
            f'mount --bind {self._hosts} /etc/hosts && mount --bind {self._resolvers} /etc/resolv.conf && exec "$@"'
        )
        return ("unshare", "--mount", "sh", "-c", script, "sh")

    def is_possible(self) -> bool:
        if shutil.which("unshare") is None:
            return False
        done = subprocess.run([*self.prefix, "true"], capture_output=True, check=False)
        return done.returncode == 0

    def lose(self) -> None:
        self._hosts.write_text("")

    def find(self) -> None:
        self._hosts.write_text(f"127.0.0.1 {NAME}\n")


async def names_away(stage: Stage, names: Names, seconds: float) -> Outcome:
    """And connections are cut again and again, so that new ones are needed, also when the last answers are forgotten."""
    mark = stage.mark()
    names.lose()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        stage.proxy.drop_all_connections()
        await asyncio.sleep(0.5)
    names.find()
    return await stage.outcome(time.monotonic(), mark=mark)
