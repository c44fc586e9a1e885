"""Address of an API server, and credentials for it.

A `Connection` is made from a kubeconfig, in a file or in memory, or from a Pod's service account. It is a value:
the client opens the sessions. Credentials that change while the process runs (token files, plugins) are requested for
every request and dropped after a 401, so nothing is pinned to the token at start. `Rotation` replaces a connection: by
a given one, or when a file has changed that the connection was made from (the kubeconfig, a CA, a client certificate).

A kubeconfig can name commands to run and files to read. `load_kubeconfig` refuses those by default, because
the programs of this project get kubeconfigs out of Secrets; tools that a person runs pass `trusted=True`.
Only then, and only if the file needs it, kubernetes-asyncio is imported (38 MiB).
"""

import asyncio
import base64
import hashlib
import importlib.util
import math
import os
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from kube.files import read_bounded
from kube.objects import mappings
from kube.runtime.kubeconfig import LARGEST_FILE, ConfigurationError, find_entry, parse_kubeconfig, read_kubeconfig

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_TOKEN_FILE_SECONDS = 60.0
_FILES_SECONDS = 10.0

_CERTIFICATES = (
    *("certificate-authority-data", "certificate-authority"),
    *("client-certificate-data", "client-certificate", "client-key-data", "client-key"),
)
_TEXTS = {
    *_CERTIFICATES,
    *("server", "tls-server-name", "proxy-url", "cluster", "user"),
    *("token", "tokenFile", "username", "password"),
}
"""Fields that are texts."""
_FILES = {
    "certificate-authority": "certificate-authority-data",
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
    "tokenFile": "token",
}
"""Fields that name files, and the fields with the content instead."""
_CERTIFICATE = b"-----BEGIN "
_VALID_FIELDS = "client-certificate-data client-key-data token username password tokenFile"


class Credentials(Protocol):
    """Source of the Authorization header."""

    async def authorization(self) -> str | None: ...

    def invalidate(self) -> bool:
        """Forget cached credentials, after a 401. Return whether the next `authorization` may give others."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Header that never changes, or none (client certificates, anonymous)."""

    header: str | None = None

    async def authorization(self) -> str | None:
        return self.header

    def invalidate(self) -> bool:
        return False


class TokenFile:
    """Bearer token in a file that another program renews; read again once a minute and after a 401."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self._clock = clock
        self._header: str | None = None
        self._read_at = -math.inf

    async def authorization(self) -> str | None:
        now = self._clock()
        if now - self._read_at >= _TOKEN_FILE_SECONDS:
            try:
                self._header = _bearer(read_bounded(self.path, most=LARGEST_FILE).decode())
            except (OSError, ValueError) as error:
                # It may be about to be renewed: use the last one until then.
                if self._header is None:
                    raise ConfigurationError(f"cannot read the token file {self.path}: {error}") from error
            self._read_at = now
        return self._header

    def invalidate(self) -> bool:
        self._read_at = -math.inf
        return True


def _bearer(token: str) -> str:
    token = token.strip()
    if not token:
        raise ValueError("the token is empty")
    if not (token.isascii() and token.isprintable()):
        raise ValueError("the token has invalid characters")
    return f"Bearer {token}"


class Plugin:
    """Credentials of an exec plugin, an OIDC or another auth provider, by way of kubernetes-asyncio."""

    def __init__(self, kubeconfig: Path, context: str | None) -> None:
        self._kubeconfig = kubeconfig
        self._context = context
        self._configuration: Any = None
        self._loading = asyncio.Lock()
        """Lets concurrent requests run the plugin only once: it may prompt its user to log in."""

    async def authorization(self) -> str | None:
        try:
            async with self._loading:
                configuration = self._configuration = self._configuration or await self._load()
            header: str | None = await configuration.get_api_key_with_prefix("BearerToken")
        except Exception as error:  # a plugin fails in ways of its own
            raise ConfigurationError(f"the plugin of the kubeconfig {self._kubeconfig} failed: {error}") from error
        if header is None:
            self._configuration = None
            raise ConfigurationError(f"the plugin of the kubeconfig {self._kubeconfig} returned no token")
        return header

    async def _load(self) -> Any:
        from kubernetes_asyncio import client, config

        configuration = client.Configuration()
        await config.load_kube_config(
            config_file=str(self._kubeconfig), context=self._context, client_configuration=configuration
        )
        return configuration

    def invalidate(self) -> bool:
        self._configuration = None
        return True


@dataclass(frozen=True, slots=True)
class Connection:
    server: str
    """Base URL: `https://host:port`, perhaps with a path."""
    tls: ssl.SSLContext | None
    credentials: Credentials
    identity: tuple[str, ...]
    """Equal for two connections to the same server with the same credentials."""
    tls_server_name: str | None = None
    authority: bytes = b""
    """CA bundle of the server, PEM; empty: the system's CAs."""
    files: tuple[Path, ...] = ()
    """Files that the connection was made from."""
    reload: "Callable[[], Connection] | None" = None
    """Makes the connection from these files again. Raises ConfigurationError."""


class Rotation:
    """Current connection: as last replaced, or according to its files, which are compared every few seconds.

    Invalid files change nothing, and neither does another server: cached state of one server is not valid for another.

    Args: on_change: called when the connection changes.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        clock: Callable[[], float] = time.monotonic,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._on_change = on_change
        self._look_at = clock() + _FILES_SECONDS
        self._seen = _digests(connection.files)

    def current(self) -> Connection:
        now = self._clock()
        if now >= self._look_at:
            self._look_at = now + _FILES_SECONDS
            self._look()
        return self._connection

    def replace(self, connection: Connection) -> None:
        """Use this connection from now on. Raises ConfigurationError: it leads to another server."""
        if connection.server != self._connection.server:
            raise ConfigurationError(
                f"the connection to {self._connection.server} can't be replaced by one to {connection.server}; "
                "close it, and open another one"
            )
        self._seen = _digests(connection.files)
        self._connection = connection
        self._on_change()

    def _look(self) -> None:
        import structlog  # only here: tools that end before a file changes start without it

        log = structlog.get_logger("connection")
        seen = _digests(self._connection.files)
        if seen == self._seen or self._connection.reload is None:
            return
        self._seen = seen
        try:
            renewed = self._connection.reload()
        except ConfigurationError as error:
            log.error("A changed file of the connection is invalid; keeping the previous connection", error=str(error))
            return
        if renewed.server != self._connection.server:
            log.error(
                "A kubeconfig has another server now; using the previous one until this process restarts",
                server=self._connection.server,
            )
            return
        log.info("Files of the connection were changed; new requests use them", server=renewed.server)
        self._connection = renewed
        self._on_change()


def _digests(files: Sequence[Path]) -> tuple[bytes | None, ...]:
    return tuple(map(_digest, files))


def _digest(file: Path) -> bytes | None:
    try:
        return hashlib.sha256(read_bounded(file, most=LARGEST_FILE)).digest()
    except (OSError, ValueError):
        return None


def in_cluster(*, environment: Mapping[str, str] = os.environ, directory: Path = SERVICE_ACCOUNT) -> Connection:
    """Connection of a Pod's service account.

    Raises: ConfigurationError: this process does not run in a Pod, or the mounted files are missing.
    """
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise ConfigurationError(
            "invalid configuration: no configuration has been provided, "
            "name a kubeconfig (KUBECONFIG) or run in a Pod with a service account"
        )
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    token, authority = directory / "token", directory / "ca.crt"
    if not token.is_file():
        raise ConfigurationError(f"the service account token {token} is missing; mount it into the Pod")
    try:
        bundle = read_bounded(authority, most=LARGEST_FILE)
        context = _trusting(bundle)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"cannot load the cluster's CA bundle {authority}: {error}") from error
    return Connection(
        server=server,
        tls=context,
        credentials=TokenFile(token),
        identity=(server, str(token)),
        authority=bundle,
        files=(authority,),
        reload=partial(in_cluster, environment=environment, directory=directory),
    )


def load_kubeconfig(path: Path, *, context: str | None = None, trusted: bool = False) -> Connection:
    """Connection of a kubeconfig's current context, or of the named one.

    Raises:
        ConfigurationError: the file can't be read, is no kubeconfig, or is not trusted and names commands,
            files or impersonation (all users of the file are checked).
    """
    document = read_kubeconfig(path, trusted=trusted)
    if not trusted:
        _refuse_unsupported(document)
    cluster, user = _chosen(document, path, context)
    return replace(
        _connection(cluster, user, path, context),
        files=(path, *(path.parent / str(named) for named in _named_files(cluster, user))),
        reload=partial(load_kubeconfig, path, context=context, trusted=trusted),
    )


def connection_of_kubeconfig(content: bytes, *, origin: str) -> Connection:
    """Connection of the current context of a kubeconfig in memory, such as one out of a Secret.

    Args: origin: name of the kubeconfig in errors.

    Raises: ConfigurationError: see `load_kubeconfig`; or the kubeconfig names a file. It comes from another cluster,
        and must not be able to send a file of this machine to its server.
    """
    document = parse_kubeconfig(content, origin=origin)
    _refuse_unsupported(document)
    where = Path(origin)  # for errors only
    cluster, user = _chosen(document, where, None)
    for field, other in _FILES.items():
        if cluster.get(field) or user.get(field):
            raise ConfigurationError(f"the kubeconfig {origin} has a file in {field}; put its content into {other}")
    return _connection(cluster, user, where, None)


def _chosen(
    document: Mapping[str, Any], path: Path, context: str | None
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Cluster and user of a context."""
    if not (name := context or document.get("current-context") or ""):
        raise ConfigurationError(f"the kubeconfig {path} has no current context; set current-context in it")
    chosen = _named(document, "contexts", name, "context", path)
    cluster = _named(document, "clusters", chosen.get("cluster") or "", "cluster", path)
    user = _named(document, "users", chosen["user"], "user", path) if chosen.get("user") else {}
    for field, found in (("contexts", chosen), ("clusters", cluster), ("users", user)):
        _demand_texts(found, field, path)
    if not _is_url(_server(cluster)):
        problem = f"has no server for cluster {chosen.get('cluster')!r}"
        raise ConfigurationError(f"the kubeconfig {path} {problem}; set its field server to https://HOST:PORT")
    if cluster.get("proxy-url"):
        raise ConfigurationError(f"the kubeconfig {path} has a proxy-url, which is not supported; remove it")
    return cluster, user


def _server(cluster: Mapping[str, Any]) -> str:
    return str(cluster.get("server") or "").rstrip("/")


def _connection(cluster: Mapping[str, Any], user: Mapping[str, Any], path: Path, context: str | None) -> Connection:
    server, (credentials, secret) = _server(cluster), _credentials(user, path, context)
    authority = _authority(cluster, path) if server.startswith("https://") else None
    return Connection(
        server=server,
        tls=_tls(cluster, user, path, authority) if server.startswith("https://") else None,
        authority=authority or b"",
        credentials=credentials,
        identity=(server, secret, str(user.get("client-certificate-data") or user.get("client-certificate") or "")),
        tls_server_name=str(cluster.get("tls-server-name") or "") or None,
    )


def _demand_texts(entry: Mapping[str, Any], field: str, path: Path) -> None:
    for name, value in entry.items():
        is_text = isinstance(value, str) or (name not in _CERTIFICATES and type(value) in {int, float})
        if name in _TEXTS and value is not None and not is_text:
            raise ConfigurationError(f"the kubeconfig {path} needs a string for {name} in {field}; put it into quotes")


def _is_url(server: str) -> bool:
    try:
        url = urlsplit(server)
        return url.scheme in {"https", "http"} and bool(url.hostname) and url.port != 0
    except ValueError:
        return False


def _named_files(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> list[Any]:
    """Files named by cluster and user, except token files, which are read again anyway."""
    named = cluster.get("certificate-authority"), user.get("client-certificate"), user.get("client-key")
    return [file for file in named if file]


def _named(document: Mapping[str, Any], field: str, name: str, inner: str, path: Path) -> Mapping[str, Any]:
    found = find_entry(document, field, name, inner)
    if found is None:
        raise ConfigurationError(f"the kubeconfig {path} has no entry {name!r} in {field}")
    return found


def _refuse_unsupported(document: Mapping[str, Any]) -> None:
    refused = {
        "client-certificate": "client certificate files",
        "client-key": "client key files",
        "as": "impersonations",
        "as-uid": "impersonations",
        "as-groups": "impersonations",
        "as-user-extra": "impersonations",
        "auth-provider": "auth provider configurations",
        "exec": "exec configurations",
    }
    for entry in mappings(document.get("users")):
        user = entry.get("user")
        for field, what in refused.items():
            if isinstance(user, dict) and user.get(field):
                raise ConfigurationError(
                    f'{what} are not supported (user "{entry.get("name")}"), '
                    f"these are the valid fields: [{_VALID_FIELDS}]"
                )


def _credentials(user: Mapping[str, Any], path: Path, context: str | None) -> tuple[Credentials, str]:
    """Credentials, and a text that is equal for equal ones."""
    if user.get("exec") or user.get("auth-provider"):
        if importlib.util.find_spec("kubernetes_asyncio") is None:
            raise ConfigurationError(
                f"the kubeconfig {path} needs a plugin for its credentials; install the extra auth-plugins"
            )
        return Plugin(path, context), f"plugin {path} {context}"
    if user.get("tokenFile"):
        file = path.parent / str(user["tokenFile"])
        return TokenFile(file), f"file {file}"
    if user.get("token"):
        try:
            header = _bearer(str(user["token"]))
        except ValueError as error:
            raise ConfigurationError(f"the kubeconfig {path} can't be used: {error}") from error
        return Fixed(header), header
    if user.get("username"):
        pair = base64.b64encode(f"{user['username']}:{user.get('password') or ''}".encode()).decode()
        return Fixed(f"Basic {pair}"), f"basic {pair}"
    return Fixed(), ""


def _authority(cluster: Mapping[str, Any], path: Path) -> bytes | None:
    """CA bundle of a cluster; None for the system's CAs. Raises ConfigurationError."""
    try:
        if cluster.get("certificate-authority-data"):
            return _decoded(cluster, "certificate-authority-data")
        if file := cluster.get("certificate-authority"):
            return read_bounded(path.parent / file, most=LARGEST_FILE)
    except (OSError, ValueError, TypeError) as error:
        raise _unusable(path, cluster, error) from error
    return None


def _tls(cluster: Mapping[str, Any], user: Mapping[str, Any], path: Path, authority: bytes | None) -> ssl.SSLContext:
    try:
        context = _trusting(authority)
        if cluster.get("insecure-skip-tls-verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        certificate, key = user.get("client-certificate-data"), user.get("client-key-data")
        if certificate and key:
            _load_key_pair(context, *(_decoded(user, name) for name in ("client-certificate-data", "client-key-data")))
        elif user.get("client-certificate") and user.get("client-key"):
            context.load_cert_chain(path.parent / user["client-certificate"], path.parent / user["client-key"])
    except (OSError, ValueError, TypeError) as error:
        raise _unusable(path, {**cluster, **user}, error) from error
    return context


def _trusting(authority: bytes | None) -> ssl.SSLContext:
    """TLS context that trusts exactly the CAs of a bundle; None: those of the system. Raises ValueError."""
    if authority is None:
        return ssl.create_default_context()
    if _CERTIFICATE not in authority:
        # An empty bundle must not count as none, which would mean the system's CAs.
        raise ValueError("it has no certificates")
    # There may be comments between certificates, in any language, and OpenSSL accepts only ASCII.
    return ssl.create_default_context(cadata=authority.decode("ascii", "ignore"))


def _unusable(path: Path, given: Mapping[str, Any], error: Exception) -> ConfigurationError:
    names = ", ".join(name for name in _CERTIFICATES if given.get(name))
    return ConfigurationError(f"the kubeconfig {path} holds certificates that can't be used ({names}): {error}")


def _decoded(fields: Mapping[str, Any], name: str) -> bytes:
    """Decode a field; invalid base64 must not count as absent, which would mean the system's CAs. Raises ValueError."""
    try:
        content = base64.b64decode("".join(fields[name].split()), validate=True)
    except ValueError:
        content = b""
    if not content:
        raise ValueError(f"{name} is not valid base64; encode the PEM file with base64")
    return content


def _load_key_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a key pair. OpenSSL reads only files; an unnamed one in memory keeps the key off the disk."""
    if not hasattr(os, "memfd_create"):  # not on Linux
        import tempfile

        with tempfile.NamedTemporaryFile() as file:
            file.write(certificate + b"\n" + key)
            file.flush()
            context.load_cert_chain(file.name)
        return
    descriptor = os.memfd_create("key-pair")
    try:
        os.write(descriptor, certificate + b"\n" + key)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
