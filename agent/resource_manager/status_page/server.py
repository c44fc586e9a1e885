"""Routes of the status page, and limits on the work for each request."""

import asyncio
from datetime import UTC, datetime
from urllib.parse import unquote

from aiohttp import web

from agent.resource_manager.status_page.lister import Lister
from agent.resource_manager.status_page.listing import Listing, Query
from agent.resource_manager.status_page.object_page import LiveReader, find_reference, object_page
from agent.resource_manager.status_page.pages import ChangesQuery, changes_page, list_page, one_page
from agent.resource_manager.status_page.rendering import render
from kube.objects import Key
from process.pages import answers
from process.pages.templates import answer_first
from process.server import HttpServer

_PORTION = 100
"""Number of ManagedResources that are processed before others on the event loop get their turn."""


class StatusPage:
    """The handler. It renders one page at a time, so that requests do not take the time of the controllers."""

    def __init__(self, lister: Lister, live: LiveReader, *, on_loopback: bool) -> None:
        self._lister = lister
        self._live = live
        self._on_loopback = on_loopback
        self._one_at_a_time = asyncio.Lock()

    async def __call__(self, request: web.BaseRequest) -> web.Response:
        first = answer_first(request, request.path, on_loopback=self._on_loopback)
        return answers.fresh(*await self._page(request)) if first is None else first

    async def _page(self, request: web.BaseRequest) -> tuple[int, str]:
        # Encoded, as a name could contain a slash.
        match request.rel_url.raw_path.split("/"):
            case ["", ""]:
                async with self._one_at_a_time:
                    listing = await self._listing(Query.of(request.query))
                    return 200, list_page(self._lister, listing, now=datetime.now(UTC))
            case ["", "changes"]:
                return 200, changes_page(self._lister, ChangesQuery.of(request.query), now=datetime.now(UTC))
            case ["", "managedresources", namespace, name]:
                found = self._lister.managed_resources.get(Key(unquote(namespace), unquote(name)))
                if found is not None:
                    return 200, one_page(self._lister, found, now=datetime.now(UTC))
            case ["", "managedresources", namespace, name, "objects", object_key]:
                found = self._lister.managed_resources.get(Key(unquote(namespace), unquote(name)))
                reference = find_reference(found, unquote(object_key)) if found is not None else None
                if found is not None and reference is not None and self._lister.is_ours(found):
                    live = await self._live.read(reference)
                    values, now = self._on_loopback, datetime.now(UTC)
                    return 200, await object_page(self._lister, found, reference, live, shows_values=values, now=now)
        return 404, render("not_found.html", self._lister, now=datetime.now(UTC), title="Not found")

    async def _listing(self, query: Query) -> Listing:
        listing = Listing(query)
        everything = [found for _, found in self._lister.managed_resources.items()]
        for start in range(0, len(everything), _PORTION):
            listing.feed(everything[start : start + _PORTION])
            await asyncio.sleep(0)
        return listing


def status_page_server(lister: Lister, live: LiveReader, *, host: str, port: int) -> HttpServer:
    """Return the server, not yet bound."""
    return HttpServer(
        "the status page",
        StatusPage(lister, live, on_loopback=answers.is_loopback(host)),
        host=host,
        port=port,
        max_connections=32,
        header_timeout=10.0,
        request_timeout=30.0,
    )
