"""`python -m webhooks configurations`: print the webhook configurations, or install them."""

import argparse
import asyncio
import base64
import binascii
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from kube.errors import KubeError, NotFound
from kube.files import read_bounded
from kube.objects import Key, Object
from kube.resources import SECRETS
from kube.runtime.client import Client
from kube.runtime.kubeconfig import ConfigurationError
from kube.visible_text import printable
from kube.x509 import load_certificates, pem
from process.configuration.errors import ConfigError
from webhooks.configurations import setting as settings
from webhooks.configurations.install import install
from webhooks.configurations.objects import Address, CaBundle, CertManager, Service, Trust, Url
from webhooks.configurations.registrations import configurations, not_registered
from webhooks.configurations.setting import Setting
from webhooks.rules.registration import Mode

PROGRAM = "python -m webhooks configurations"
BUNDLE = "bundle.crt"
_LARGEST_BUNDLE = 1 << 20


class _Problem(Exception):
    """A problem that the user has to correct."""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Print the webhook configurations of the enabled webhooks, for `kubectl apply -f -`.",
        epilog=settings.EPILOG,
        allow_abbrev=False,
    )
    settings.add_arguments(made)
    address = made.add_mutually_exclusive_group()
    address.add_argument(
        "--url",
        type=_url,
        metavar="URL",
        help="URL of the webhooks for the API server: https://host:port. Default for a target instance: the "
        "Service in the namespace of the server",
    )
    address.add_argument(
        "--service",
        type=_namespaced_name,
        metavar="NAMESPACE/NAME",
        help="Service of the webhooks, if the API server can reach it. Default for a runtime instance",
    )
    trust = made.add_mutually_exclusive_group(required=True)
    trust.add_argument("--ca-file", metavar="FILE", help="CA certificates (PEM) that the API server trusts")
    trust.add_argument(
        "--ca-secret",
        type=_namespaced_name,
        metavar="NAMESPACE/NAME",
        help=f"Secret of the source cluster with the CA certificates, under the key {BUNDLE}",
    )
    trust.add_argument(
        "--inject-ca-from",
        type=_namespaced_name,
        metavar="NAMESPACE/NAME",
        help="Certificate of cert-manager, which then injects its CA",
    )
    trust.add_argument(
        "--no-ca",
        action="store_true",
        help="omit the CA, which `python -m webhooks certificates` injects; not with --install",
    )
    made.add_argument(
        "--combined", action="store_true", help="use a single webhook for pods instead of one for each change"
    )
    made.add_argument(
        "--install",
        action="store_true",
        help="write changed configurations to the target cluster, and delete obsolete ones of this instance",
    )
    return made


def main(arguments: Sequence[str], *, environment: Mapping[str, str] = os.environ) -> int:
    given = parser().parse_args(arguments)
    if given.no_ca and given.install:
        parser().error("argument --no-ca: not allowed with argument --install, which would remove an existing CA")
    try:
        return asyncio.run(_run(given, environment))
    except (ConfigError, ConfigurationError, KubeError, _Problem) as error:
        print(printable(f"Error: {error}"), file=sys.stderr)
        return 1


async def _run(given: argparse.Namespace, environment: Mapping[str, str]) -> int:
    setting = settings.read(given, environment=environment)
    for warning in (*setting.warnings, *_not_registered(setting)):
        print(printable(f"Warning: {warning}"), file=sys.stderr)
    wanted = configurations(
        setting.config.webhooks,
        setting.instance,
        address=address_of(given, setting),
        trust=await _trust(given, setting, environment),
        combined=given.combined,
    )
    if not given.install:
        sys.stdout.write(_document(setting, wanted))
        return 0
    async with settings.transport(setting, "target", environment) as transport:
        for done in await install(settings.client(setting, transport), setting.instance, wanted):
            sys.stdout.write(f"{printable(str(done))}\n")
    return 0


def _not_registered(setting: Setting) -> list[str]:
    return [
        f"{key} is enabled, but a target instance does not serve it; no webhook is generated for it"
        for key in not_registered(setting.config.webhooks, setting.instance)
    ]


def _document(setting: Setting, wanted: Sequence[Object]) -> str:
    head = f"# Webhooks of the {setting.instance.mode.value} instance {setting.instance.app}.\n"
    if not wanted:
        return f"{head}# None is enabled.\n"
    return head + yaml.safe_dump_all(wanted, sort_keys=False, default_flow_style=False)


def address_of(given: argparse.Namespace, setting: Setting) -> Address:
    if given.url:
        return Url(given.url)
    if given.service:
        return Service(*given.service)
    name, namespace = setting.instance.app, setting.namespace
    return Service(namespace, name) if setting.instance.mode is Mode.RUNTIME else Url(f"https://{name}.{namespace}:443")


async def _trust(given: argparse.Namespace, setting: Setting, environment: Mapping[str, str]) -> Trust:
    if given.no_ca:
        return None
    if given.inject_ca_from:
        return CertManager("/".join(given.inject_ca_from))
    if given.ca_file:
        return CaBundle(certificates(_read(given.ca_file), of=given.ca_file))
    namespace, name = given.ca_secret
    async with settings.transport(setting, "source", environment) as transport:
        return CaBundle(await bundle_of(settings.client(setting, transport), namespace, name))


def _read(path: str) -> bytes:
    try:
        return read_bounded(Path(path), most=_LARGEST_BUNDLE)
    except OSError as error:
        raise _Problem(f"cannot read --ca-file {path}: {error.strerror}") from error
    except ValueError:
        raise _Problem(f"--ca-file {path} is larger than {_LARGEST_BUNDLE} bytes") from None


async def bundle_of(client: Client, namespace: str, name: str) -> bytes:
    """Return the certificates in the Secret of a CA."""
    try:
        secret = await client.get(SECRETS, Key(namespace, name))
    except NotFound as error:
        raise _Problem(f'secret "{name}" not found in namespace "{namespace}"') from error
    encoded = (secret.get("data") or {}).get(BUNDLE)
    if not encoded:
        raise _Problem(f'secret "{namespace}/{name}" has no data {BUNDLE}')
    try:
        content = base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise _Problem(f'data {BUNDLE} of secret "{namespace}/{name}" is not valid base64') from error
    return certificates(content, of=f'data {BUNDLE} of secret "{namespace}/{name}"')


def certificates(content: bytes, *, of: str) -> bytes:
    """Return only the certificates in the content: a private key next to them must not get into a configuration."""
    found = load_certificates(content)
    if not found:
        raise _Problem(f"{of} holds no certificates in PEM format")
    return pem(*found)


def _namespaced_name(text: str) -> tuple[str, str]:
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise argparse.ArgumentTypeError(f'"{text}" is not of the form namespace/name')
    return namespace, name


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme != "https" or not parts.hostname or parts.query or parts.fragment or "@" in parts.netloc:
        raise argparse.ArgumentTypeError(f'"{text}" is not of the form https://host:port')
    return text
