"""Answers to browsers, and which names a page is served under.

On loopback only who can get there reads a page: by `kubectl port-forward`, for which RBAC asks. A browser that got
there could be made to read it for somebody else by a name that is made to point to 127.0.0.1 (DNS rebinding), so other
names than those of this computer are refused there.
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
    """The answer to what is not served at all; None: it is served. Args: on_loopback: see `is_loopback`."""
    if on_loopback and not is_name_of_this_computer(request.headers.get("Host", "")):
        return _plain(421, "this page is served as localhost, 127.0.0.1 and [::1] only\n")
    if request.method not in {"GET", "HEAD"}:
        return _plain(405, "this page is read only\n", Allow="GET, HEAD")
    return None


def fresh(status: int, text: str, kind: str = "text/html") -> web.Response:
    """What is true only now."""
    return _answer(status, text, kind, **{"Cache-Control": "no-store"})


def kept(text: str, kind: str) -> web.Response:
    """What has a digest in its path, and may be kept for good."""
    return _answer(200, text, kind, **{"Cache-Control": "public, max-age=31536000, immutable"})


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
