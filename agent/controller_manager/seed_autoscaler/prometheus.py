"""Usage of a resource of Seeds, measured by Prometheus.

Passes query it when they need it, at most once in a period: other passes get the last answer, unless that is too old.
So neither many changes nor many SeedAutoscalers make many queries, and a failed query changes nothing at once. Only the
configured address is contacted: no proxies, no redirects.
"""

import asyncio
import ssl
from datetime import datetime, timedelta
from functools import cached_property

import structlog

from agent.controller_manager.seed_autoscaler.rules.prometheus import Measurement, Samples, error_of, fresh, samples_of
from config.controller_manager.controllers import SeedResource
from kube.runtime.http import aiohttp

_TIMEOUT = aiohttp.ClientTimeout(total=10.0)
_LONGEST_ANSWER = 4 << 20
"""Bytes: enough for tens of thousands of Seeds."""
_LONGEST_PROBLEM = 400
log = structlog.get_logger("seedautoscaler")


class Prometheus:
    """Source of one resource; `period` is the time between two queries."""

    def __init__(self, resource: SeedResource, *, period: timedelta) -> None:
        self.resource = resource.name
        self._url = f"{resource.prometheus.address.rstrip('/')}/api/v1/query"
        self._query = resource.prometheus.query
        self._period = period
        self._asking = asyncio.Lock()
        self._asked_at: datetime | None = None
        self._samples: Samples = {}
        self._problem = ""

    async def measured(self, now: datetime) -> Measurement:
        async with self._asking:
            if self._asked_at is None or not timedelta(0) <= now - self._asked_at < self._period:
                self._asked_at = now
                await self._ask()
        return Measurement(by_seed=fresh(self._samples, now.timestamp()), problem=self._problem)

    @property
    def again_at(self) -> datetime | None:
        """Time of the next query; None if there was none yet."""
        return None if self._asked_at is None else self._asked_at + self._period

    async def _ask(self) -> None:
        try:
            self._samples, problem = samples_of(await self._answer()), ""
        except TimeoutError:
            problem = "Prometheus did not respond in time"
        except (OSError, ValueError, aiohttp.ClientError) as error:
            problem = f"Prometheus: {error}"[:_LONGEST_PROBLEM]
        if problem != self._problem:
            log.info("Usage of Seeds is measured again", resource=self.resource, problem=problem)
        self._problem = problem

    async def _answer(self) -> bytes:
        """Query Prometheus, and return the body.

        Raises:
            TimeoutError: no response in time.
            OSError: the connection failed.
            ClientError: the request failed.
            ValueError: the answer is too long, or reports a failure.
        """
        connector = aiohttp.TCPConnector(ssl=self._tls if self._url.startswith("https:") else True)
        async with (
            aiohttp.ClientSession(connector=connector, timeout=_TIMEOUT, auto_decompress=False) as session,
            session.get(
                self._url,
                params={"query": self._query},
                headers={"Accept": "application/json", "Accept-Encoding": "identity"},
                allow_redirects=False,
            ) as response,
        ):
            body = bytearray()
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > _LONGEST_ANSWER:
                    raise ValueError(f"the response is larger than {_LONGEST_ANSWER} bytes")
            if response.status != 200:
                raise ValueError(error_of(response.status, bytes(body)))
            return bytes(body)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """TLS context with the certificate authorities of this machine."""
        return ssl.create_default_context()
