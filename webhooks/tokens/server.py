"""Paths, as an API server serves them, and public documents for verifying tokens.

GET  /apis/authentication.gardener.cloud/v1alpha1
POST /apis/authentication.gardener.cloud/v1alpha1/namespaces/NAMESPACE/workloadidentities/NAME/token
POST /apis/authentication.gardener.cloud/v1alpha1/login/apis/..., the paths of Gardener's own API server
GET  /.well-known/openid-configuration
GET  /jwks
"""

import re
import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from urllib.parse import unquote

import orjson
from aiohttp import web

from gardenapi.api import Role
from gardener.api.garden import AUTHENTICATION_API, SHOOTS, WORKLOAD_IDENTITIES
from kube.errors import KubeError
from kube.names import dns_label_problems, dns_subdomain_problems
from kube.objects import Key, Object
from kube.resources import Resource
from process.logging import get_logger
from process.server import HttpServer, read_body
from webhooks.admission import Refusal, User
from webhooks.tokens.front_proxies import FrontProxies
from webhooks.tokens.identities import REQUEST, IdentityTokens
from webhooks.tokens.issuer import CannotIssue, Issuers
from webhooks.tokens.kubeconfigs import Kubeconfigs
from webhooks.tokens.paths import LOGIN, ROOT, TOKEN, issued_at
from webhooks.tokens.requests import Refused

_OBJECT = re.compile(rf"{re.escape(ROOT)}/namespaces/([^/]+)/([^/]+)/([^/]+)/([^/]+)")
_PUBLIC = ("/.well-known/openid-configuration", "/jwks")
_LARGEST = 64 << 10
_MAX_CONNECTIONS = 256
_MAX_BUFFERED = 4 << 20
_SECONDS = 30.0

Action = Callable[[User, Key, Object], Awaitable[Object]]


class TokenRequests:
    def __init__(
        self, proxies: FrontProxies, issuers: Issuers, identities: IdentityTokens, kubeconfigs: Kubeconfigs
    ) -> None:
        self._proxies = proxies
        self._issuers = issuers
        self._actions: dict[tuple[str, str], Action] = {
            (WORKLOAD_IDENTITIES.plural, TOKEN): identities.request,
            **{(SHOOTS.plural, role.subresource): partial(kubeconfigs.request, role) for role in Role},
        }
        self._log = get_logger("tokens")

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.raw_path.partition("?")[0]
        if path in _PUBLIC and request.method in {"GET", "HEAD"}:
            return await self._public(path)
        try:
            return await self._answer(request, path)
        except Refused as error:
            return _failure(error.status, error.reason, str(error))
        except Refusal:
            return _failure(429, "TooManyRequests", "too many requests of this user at a time")
        except CannotIssue as error:
            self._log.error("Cannot issue tokens or kubeconfigs", error=str(error))
            return _failure(500, "InternalError", str(error))
        except KubeError as error:
            self._log.error("Cannot issue tokens or kubeconfigs", error=str(error))
            return _failure(503, "ServiceUnavailable", f"the token server can't read its inputs: {error}")

    async def _answer(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        user = self._proxies.user(request)
        if user is None:
            raise Refused(
                401, "Unauthorized", "only the API server of the garden may send requests; use its API instead"
            )
        if path == ROOT and request.method == "GET":
            return _json(200, _DISCOVERY)
        if path.startswith(f"{LOGIN}/") and not (path := issued_at(path.removeprefix(LOGIN))):
            raise Refused(
                404,
                "NotFound",
                "only kubeconfigs and tokens are issued here; use the garden's own address for the rest",
            )
        found = _OBJECT.fullmatch(path)
        namespace, plural, name, subresource = map(unquote, found.groups()) if found else ("", "", "", "")
        action = self._actions.get((plural, subresource))
        if action is None or dns_label_problems(namespace) or dns_subdomain_problems(name):
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        if request.method != "POST":
            raise Refused(405, "MethodNotAllowed", f"{request.method} is not supported; POST is")
        return _json(201, await action(user, Key(namespace, name), await _body(request)))

    async def _public(self, path: str) -> web.StreamResponse:
        try:
            issuer = await self._issuers.current()
        except (CannotIssue, KubeError) as error:
            self._log.error("Cannot serve the keys of the token issuer", error=str(error))
            return web.Response(status=503, text="503 the issuer is not set up\n")
        return _json(200, issuer.published if path == "/jwks" else issuer.configuration())


def _served(resource: Resource, subresource: str, api_version: str, kind: str) -> Object:
    group, version = api_version.split("/")
    name = f"{resource.plural}/{subresource}"
    described = {"name": name, "singularName": "", "namespaced": True, "verbs": ["create"]}
    return {**described, "group": group, "version": version, "kind": kind}


_DISCOVERY: Object = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": AUTHENTICATION_API,
    "resources": [
        _served(WORKLOAD_IDENTITIES, TOKEN, REQUEST["apiVersion"], REQUEST["kind"]),
        *(_served(SHOOTS, role.subresource, AUTHENTICATION_API, role.request_kind) for role in Role),
    ],
}


async def _body(request: web.BaseRequest) -> Object:
    try:
        content = await read_body(request, most=_LARGEST)
        body: Any = orjson.loads(content) if content else {}
    except web.HTTPRequestEntityTooLarge:
        raise Refused(413, "RequestEntityTooLarge", f"the body is larger than {_LARGEST} bytes") from None
    except (orjson.JSONDecodeError, web.RequestPayloadError):
        body = None
    if not isinstance(body, dict):
        raise Refused(400, "BadRequest", "the body must be an object, as JSON")
    return body


def _json(status: int, content: Object) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(content), content_type="application/json")


def _failure(status: int, reason: str, message: str) -> web.Response:
    head = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return _json(status, {**head, "message": message, "reason": reason, "code": status})


def token_server(
    requests: TokenRequests, *, host: str, port: int, tls: ssl.SSLContext, grace_period: float
) -> HttpServer:
    """Return the server, not yet bound."""
    return HttpServer(
        "tokens",
        requests,
        host=host,
        port=port,
        tls=tls,
        max_connections=_MAX_CONNECTIONS,
        request_timeout=_SECONDS,
        max_buffered=_MAX_BUFFERED,
        linger=0.35 * grace_period,
        drain_timeout=0.2 * grace_period,
    )
