"""Who may ask the status page for what, and the headers that go with it.

On loopback only who can get there reads the page: by `kubectl port-forward`, for which RBAC asks. A browser that got
there could be made to read it for somebody else by a name that is made to point to 127.0.0.1 (DNS rebinding), so other
names than those of this computer are refused there.
"""

import asyncio
from datetime import UTC, datetime
from ipaddress import ip_address
from urllib.parse import unquote

from aiohttp import web

from agent.resource_manager.status_page.lister import Lister
from agent.resource_manager.status_page.listing import Listing, Query
from agent.resource_manager.status_page.object_page import LiveReader, find_reference, object_page
from agent.resource_manager.status_page.pages import ChangesQuery, changes_page, list_page, one_page
from agent.resource_manager.status_page.rendering import STATIC, render
from kube.objects import Key
from process.server import HttpServer

_PORTION = 100
"""ManagedResources that are looked at before others on the event loop get their turn."""
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_FOREVER = "public, max-age=31536000, immutable"


class StatusPage:
    """The handler. Pages are made one after the other, so that requests do not take the time of the controllers."""

    def __init__(self, lister: Lister, live: LiveReader, *, on_loopback: bool) -> None:
        self._lister = lister
        self._live = live
        self._on_loopback = on_loopback
        self._one_at_a_time = asyncio.Lock()

    async def __call__(self, request: web.BaseRequest) -> web.Response:
        if self._on_loopback and not is_name_of_this_computer(request.headers.get("Host", "")):
            return _plain(421, "this page is served as localhost, 127.0.0.1 and [::1] only\n")
        if request.method not in {"GET", "HEAD"}:
            return _plain(405, "the status page is read only\n", Allow="GET, HEAD")
        if request.path in STATIC:
            content, kind = STATIC[request.path]
            return _answer(200, content, kind, **{"Cache-Control": _FOREVER})
        status, page = await self._page(request)
        return _answer(status, page, "text/html", **{"Cache-Control": "no-store"})

    async def _page(self, request: web.BaseRequest) -> tuple[int, str]:
        # Encoded, as a name could have a slash in it for all we know.
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


def _plain(status: int, text: str, **headers: str) -> web.Response:
    return _answer(status, text, "text/plain", **headers)


def _answer(status: int, text: str, kind: str, **headers: str) -> web.Response:
    body = text.encode(errors="replace")
    return web.Response(status=status, body=body, content_type=kind, charset="utf-8", headers={**_HEADERS, **headers})


# --- who may ask


def is_loopback(address: str) -> bool:
    """Whether what is listened on can be reached from this computer (or pod) only."""
    if address == "localhost":
        return True
    try:
        return ip_address(address.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def is_name_of_this_computer(host: str) -> bool:
    """Whether a Host header names it by a loopback address or as localhost, with any port: forwarding changes it."""
    name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "0")
    if not name:
        name, port = port, "0"
    return port.isascii() and port.isdigit() and is_loopback(name.lower())


def status_page_server(lister: Lister, live: LiveReader, *, host: str, port: int) -> HttpServer:
    """The server, not yet bound."""
    return HttpServer(
        "the status page",
        StatusPage(lister, live, on_loopback=is_loopback(host)),
        host=host,
        port=port,
        max_connections=32,
        header_timeout=10.0,
        request_timeout=30.0,
    )
