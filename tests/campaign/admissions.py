"""Users who create pods all the time, in a dry run, and do not give up: a failure counts, and then they try again."""

import asyncio
import time

from campaign.model import SETTLED
from campaign.oracles import Admissions, Failure
from kit.background import Clients
from kit.objects import pod
from kube.errors import ApiError, KubeError
from kube.runtime.client import Client

_CLIENTS = 2
_PAUSE_SECONDS = 0.1
_AGAIN_SECONDS = 0.3
_PATH = f"/api/v1/namespaces/{SETTLED[0]}/pods"
_ATTEMPT_SECONDS = 25.0


class Users(Clients):
    """At work as long as the block lasts. A pod that could not be created for `patience` seconds is lost."""

    def __init__(self, client: Client, *, patience: float) -> None:
        super().__init__(_CLIENTS)
        self.seen = Admissions()
        self._client = client
        self._patience = patience

    async def work(self) -> None:
        while True:
            deadline = time.monotonic() + self._patience
            while text := await self._attempt():
                if time.monotonic() > deadline:
                    self.seen.lost.append(text)
                    break
                await asyncio.sleep(_AGAIN_SECONDS)
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _attempt(self) -> str:
        """Why it failed; empty if it did not."""
        try:
            answer = await self._client.request(
                "POST", _PATH, params={"dryRun": "All"}, body=pod("asked"), timeout=_ATTEMPT_SECONDS
            )
        except KubeError as error:
            # That the API server is away is its own affair; what it reports about webhooks is ours.
            if isinstance(error, ApiError) and "webhook" in str(error):
                self.seen.failures.append(Failure(time.time(), str(error)))
            return str(error)
        self.seen.succeeded += 1
        if b'"RuntimeDefault"' not in answer:
            self.seen.unchanged += 1
        return ""
