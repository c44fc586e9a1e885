"""Answers to browsers, and the host names that a page is served for.

On loopback, only clients that can reach it read a page: by `kubectl port-forward`, which RBAC restricts. Another site
could make such a browser read it through a name that points to 127.0.0.1 (DNS rebinding), so names other than those of
this computer are refused there.
"""

from ipaddress import ip_address

from aiohttp import web

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


def refusal(request: web.BaseRequest, *, on_loopback: bool) -> web.Response | None:
    """Answer to a refused request; None if it is served. `on_loopback`: see `is_loopback`."""
    if on_loopback and not is_name_of_this_computer(request.headers.get("Host", "")):
        return _plain(421, "this page is served as localhost, 127.0.0.1 and [::1] only; use one of these\n")
    if request.method not in {"GET", "HEAD"}:
        return _plain(405, "this page is read only\n", Allow="GET, HEAD")
    return None


def fresh(status: int, text: str, kind: str = "text/html") -> web.Response:
    """Answer that must not be cached."""
    return _answer(status, text, kind, **{"Cache-Control": "no-store"})


def kept(text: str, kind: str) -> web.Response:
    """Answer with a digest in its path, cached without limit."""
    return _answer(200, text, kind, **{"Cache-Control": "public, max-age=31536000, immutable"})


def _plain(status: int, text: str, **headers: str) -> web.Response:
    return _answer(status, text, "text/plain", **headers)


def _answer(status: int, text: str, kind: str, **headers: str) -> web.Response:
    body = text.encode(errors="replace")
    return web.Response(status=status, body=body, content_type=kind, charset="utf-8", headers={**_HEADERS, **headers})


# --- access


def is_loopback(address: str) -> bool:
    """Whether a listener on the address can be reached from this computer (or pod) only."""
    if address == "localhost":
        return True
    try:
        return ip_address(address.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def is_name_of_this_computer(host: str) -> bool:
    """Whether a Host header has a loopback address or localhost, with any port: forwarding changes it."""
    name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "0")
    if not name:
        name, port = port, "0"
    return port.isascii() and port.isdigit() and is_loopback(name.lower())
