"""`python -m webhooks certificates`: create the server's certificates and renew them in time."""

import argparse
import asyncio
import contextlib
import datetime
import ipaddress
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from config.resource_manager.schema import ResourceManagerConfiguration
from gardener.api.garden import AUTHENTICATION_API
from kube.errors import KubeError
from kube.names import dns_subdomain_problems
from kube.resources import SECRETS
from kube.runtime.client import Client
from kube.runtime.kubeconfig import ConfigurationError
from kube.visible_text import printable
from process.configuration.errors import ConfigError
from process.logging import configure_logging
from webhooks.certificates.keeper import CannotKeep, CertificateOptions, Keeper, keep
from webhooks.configurations import setting as settings
from webhooks.configurations.setting import Setting

PROGRAM = "python -m webhooks certificates"


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Create a CA and a certificate for the webhook server, renew both in time, and keep the CA in the "
        "webhook configurations current. Several instances can run at the same time.",
        epilog=settings.EPILOG,
        allow_abbrev=False,
    )
    settings.add_arguments(made)
    made.add_argument(
        "--secret", metavar="NAME", help="Secret for the server; default: [prefix]gardener-resource-manager-server"
    )
    made.add_argument(
        "--ca-secret", metavar="NAME", help="Secret of the CA; default: [prefix]gardener-resource-manager-ca"
    )
    made.add_argument(
        "--dns-name",
        action="append",
        default=[],
        type=_name,
        metavar="NAME",
        help="additional name or IP address of the server, besides those of its Service; repeatable",
    )
    made.add_argument("--directory", metavar="DIR", help="also write the server's certificate to this directory")
    how_long = made.add_mutually_exclusive_group(required=True)
    how_long.add_argument(
        "--once", action="store_true", help="create or renew certificates now if due, and exit; for a Job"
    )
    how_long.add_argument("--watch", action="store_true", help="keep running, and renew certificates when due")
    return made


def main(arguments: Sequence[str], *, environment: Mapping[str, str] = os.environ) -> int:
    given = parser().parse_args(arguments)
    try:
        setting = settings.read(given, environment=environment)
        config = setting.config
        configure_logging(level=cast("Any", config.log_level), log_format=cast("Any", config.log_format))
        asyncio.run(_run(given, setting, environment))
    except (ConfigError, ConfigurationError, KubeError, CannotKeep) as error:
        print(printable(f"Error: {error}"), file=sys.stderr)
        return 1
    return 0


def options_of(given: argparse.Namespace, setting: Setting) -> CertificateOptions:
    name, namespace = setting.instance.app, setting.namespace
    service = (name, f"{name}.{namespace}", f"{name}.{namespace}.svc", f"{name}.{namespace}.svc.cluster.local")
    return CertificateOptions(
        instance=setting.instance,
        namespace=namespace,
        secret=given.secret or f"{name}-server",
        ca_secret=given.ca_secret or f"{name}-ca",
        names=tuple(dict.fromkeys((*service, *given.dns_name))),
        directory=Path(given.directory) if given.directory else None,
        api_service=api_service_of(setting.config),
    )


async def _run(given: argparse.Namespace, setting: Setting, environment: Mapping[str, str]) -> None:
    options = options_of(given, setting)
    async with (
        settings.transport(setting, "source", environment) as source_transport,
        settings.transport(setting, "target", environment) as target_transport,
    ):
        source, target = settings.client(setting, source_transport), settings.client(setting, target_transport)
        keeper = Keeper(options, source=source, target=target, clock=_now)
        if given.once:
            await keeper.run()
        else:
            await _until_stopped(keeper, options, source, target)


async def _until_stopped(keeper: Keeper, options: CertificateOptions, source: Client, target: Client) -> None:
    watched = [
        (source, SECRETS, options.namespace, options.ca_secret),
        (source, SECRETS, options.namespace, options.secret),
        *((target, resource, "", name) for resource, name in options.registrations),
    ]
    keeping = asyncio.ensure_future(keep(keeper, watched, clock=_now))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, keeping.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await keeping


def api_service_of(config: Any) -> str:
    """Name of the APIService of a garden whose server issues tokens; empty otherwise."""
    if isinstance(config, ResourceManagerConfiguration) or not config.server.tokens.port:
        return ""
    group, version = AUTHENTICATION_API.split("/")
    return f"{version}.{group}"


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _name(text: str) -> str:
    with contextlib.suppress(ValueError):
        return str(ipaddress.ip_address(text))
    if problems := dns_subdomain_problems(text.removeprefix("*.")):
        raise argparse.ArgumentTypeError(f'"{text}" is neither a DNS name nor an IP address: {"; ".join(problems)}')
    return text
