"""The API server of a Shoot, its controller manager, and its resource manager."""

import base64
from collections.abc import Mapping
from dataclasses import replace

from agent.gardenlet.components import kube_apiserver, kube_controller_manager, shoot_pods
from agent.gardenlet.components.control_plane import controller_managers, least_api_servers
from agent.gardenlet.components.kube_apiserver import Encryption, files
from agent.gardenlet.components.parts import deployment_unready
from agent.gardenlet.components.resource_manager import NAME as RESOURCE_MANAGER
from agent.gardenlet.components.resource_manager import shoot as resource_manager
from agent.gardenlet.components.resource_manager.configuration import Pods
from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.secrets_manager import tables
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.rules.encryption import FORMER, MARKS, POPULATED, encrypted, former, is_marked
from agent.gardenlet.shoot.main.rules.rotation import SERVERS_BY_CURRENT
from agent.gardenlet.shoot.main.tasks import foundation, token_bootstrap
from agent.gardenlet.shoot.main.tasks.secrets import bundle_name_of, encryption_key, health_token, name_of
from config.fields import as_object
from gardener.api.kinds import MANAGED_RESOURCES, VERTICAL_POD_AUTOSCALERS
from gardener.garden.rotations import AUTHORITIES, COMPLETING, ENCRYPTION_KEY, PREPARING
from kube.objects import (
    Key,
    Object,
    annotations,
    integer,
    is_deleting,
    key,
    mapping,
    mappings,
    metadata,
    spec,
    string_map,
    text,
)
from kube.paths import at, mappings_at
from kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
)
from kube.runtime.client import Selection
from kube.runtime.controller import TerminalError
from kube.runtime.threads import KEYS

_API_SERVER_SECONDS, _OTHERS_SECONDS, _GONE_SECONDS = 300.0, 180.0, 300.0
_ENDED_SECONDS = 120.0
_KINDS = [
    each.type_meta
    for each in (
        CONFIG_MAPS,
        DEPLOYMENTS,
        HORIZONTAL_POD_AUTOSCALERS,
        MANAGED_RESOURCES,
        POD_DISRUPTION_BUDGETS,
        ROLE_BINDINGS,
        ROLES,
        SECRETS,
        SERVICE_ACCOUNTS,
        SERVICES,
        VERTICAL_POD_AUTOSCALERS,
    )
]
"""Of which its objects are."""
_THIS_COMPUTER = "resource-manager:local"
"""Its image, where it is run without one."""


# --- API server


async def api_server(operation: ShootOperation) -> None:
    """Raises ReconcileError, NotInTimeError, KubeError."""
    await deploy(operation, kube_apiserver.NAME, await _api_server_objects(operation))
    if not operation.is_in(PREPARING, ENCRYPTION_KEY):
        return
    key_name = name_of(operation, tables.ENCRYPTION_KEY.name)
    live = await operation.find(DEPLOYMENTS, kube_apiserver.NAME)
    if not is_marked(annotations(live or {}), POPULATED, key_name):
        await api_server_is_rolled_out(operation)
        await mark_api_server(operation, {POPULATED: key_name})
        await deploy(operation, kube_apiserver.NAME, await _api_server_objects(operation))


async def mark_api_server(operation: ShootOperation, marks: Mapping[str, str | None]) -> None:
    """With annotations; None: without. Raises KubeError."""
    body: Object = {"metadata": {"annotations": dict(marks)}}
    await operation.seed.client.patch(DEPLOYMENTS, kube_apiserver.NAME, body, namespace=operation.technical_id)


async def api_server_is_rolled_out(operation: ShootOperation) -> None:
    """Until none serves as before, whatever the user says of waiting. Raises ReconcileError, NotInTimeError, KubeError.

    One that ends may serve still.
    """
    await wait_for_api_server(operation)
    labels = ",".join(f"{name}={value}" for name, value in kube_apiserver.LABELS.items())
    await operation.waiting.until_none(
        PODS,
        Selection(operation.technical_id, label_selector=labels),
        seconds=_ENDED_SECONDS,
        missing=lambda pod: "it has the former configuration" if is_deleting(pod) else "",
        report=waits_for,
    )


async def _api_server_objects(operation: ShootOperation) -> list[Object]:
    live = await operation.find(DEPLOYMENTS, kube_apiserver.NAME)
    encryption = _encryption(operation, live)
    objects = kube_apiserver.objects(await _api_server_values(operation, encryption))
    for each in objects:
        if each["kind"] == DEPLOYMENTS.kind:
            metadata(each)["annotations"] |= _marks(operation, live, encryption)
    return objects


def _marks(operation: ShootOperation, live: Object | None, encryption: Encryption) -> dict[str, str]:
    """Annotations that say how far a change of what is encrypted, and with what, or a rotation has got."""
    change = encrypted(operation.shoot)
    encrypts_anew = operation.keys.get(tables.ENCRYPTION_KEY.name).old is not None or bool(change.changed)
    kept = {
        SERVERS_BY_CURRENT: operation.is_in(COMPLETING, AUTHORITIES),
        FORMER: bool(encryption.removed) and not change.removed,
    }
    return {
        name: value
        for name, value in annotations(live or {}).items()
        if name.startswith(MARKS) and kept.get(name, encrypts_anew)
    }


def _encryption(operation: ShootOperation, live: Object | None) -> Encryption:
    """While a key is rotated, the new one is used once all API servers know it, and then for ever.

    An object that was written anew would otherwise be stored with the old key again, and never again with the new one.

    Args: live: the Deployment.
    """
    made, resources = operation.keys.get(tables.ENCRYPTION_KEY.name), encrypted(operation.shoot)

    def by(*, current: bool) -> Encryption:
        old = encryption_key(made.old) if made.old else None
        keys = kube_apiserver.encryption_keys(encryption_key(made.current), old, encrypts_by_current=current)
        return Encryption(keys=keys, resources=resources.resources, removed=resources.removed)

    new = by(current=True)
    if made.old is None or not operation.is_in(PREPARING, ENCRYPTION_KEY):
        # That others can still be decrypted is of no use, but no reason for a roll-out.
        as_before = new if new.removed else replace(new, removed=former(annotations(live or {})))
        return as_before if _reads(live, files.encryption(operation.technical_id, as_before)) else new
    is_known = live is None or is_marked(annotations(live), POPULATED, made.current.name)
    return new if is_known or _reads(live, files.encryption(operation.technical_id, new)) else by(current=False)


def _reads(deployment: Object | None, secret: Object) -> bool:
    names = {at(each, "secret", "secretName") for each in mappings_at(deployment or {}, *_VOLUMES)}
    return key(secret).name in names


_VOLUMES = ("spec", "template", "spec", "volumes")


async def _api_server_values(operation: ShootOperation, encryption: Encryption) -> kube_apiserver.Values:
    settings = mapping(at(spec(operation.shoot), "kubernetes", "kubeAPIServer"))
    return kube_apiserver.Values(
        namespace=operation.technical_id,
        image=operation.image_of_kubernetes(kube_apiserver.NAME),
        version=operation.version,
        secrets=kube_apiserver.Secrets(
            ca_bundle=bundle_name_of(operation, tables.CA.name),
            ca_client_bundle=bundle_name_of(operation, tables.CA_CLIENT.name),
            ca_front_proxy_bundle=bundle_name_of(operation, tables.CA_FRONT_PROXY.name),
            ca_etcd_bundle=bundle_name_of(operation, tables.CA_ETCD.name),
            etcd_client=name_of(operation, "etcd-client"),
            server=name_of(operation, "kube-apiserver"),
            aggregator=name_of(operation, "kube-aggregator"),
            service_account_key=name_of(operation, tables.SERVICE_ACCOUNT_KEY.name),
            service_account_key_bundle=bundle_name_of(operation, tables.SERVICE_ACCOUNT_KEY.name),
            static_token=name_of(operation, "kube-apiserver-static-token"),
            **({} if operation.is_workerless else _of_kubelets(operation)),
        ),
        encryption=encryption,
        health_token=health_token(operation),
        host=operation.internal.host,
        service_network=foundation.service_network(operation),
        advertised=operation.found.cluster_ip,
        settings=settings,
        audit_policy=await _config_map_of(operation, settings, "auditConfig", "auditPolicy", "configMapRef", "name"),
        authentication=await _config_map_of(operation, settings, "structuredAuthentication", "configMapName"),
        admission_kubeconfigs=await _admission_kubeconfigs(operation, settings),
        running=operation.running,
        least_replicas=least_api_servers(operation.shoot),
        autoscaled=operation.autoscaled,
        has_workers=not operation.is_workerless,
    )


def _of_kubelets(operation: ShootOperation) -> dict[str, str]:
    found = {
        "ca_kubelet_bundle": bundle_name_of(operation, tables.CA_KUBELET.name),
        "kubelet": name_of(operation, "kube-apiserver-kubelet"),
    }
    if operation.has_tunnel:
        found["ca_vpn_bundle"] = bundle_name_of(operation, tables.CA_VPN.name)
        found["http_proxy"] = name_of(operation, "kube-apiserver-http-proxy")
    return found


async def _admission_kubeconfigs(operation: ShootOperation, settings: Object) -> dict[str, str]:
    """Of the Secrets in the garden that admission plugins refer to, by plugin."""
    found = {}
    for each in mappings(settings.get("admissionPlugins")):
        if name := text(each.get("kubeconfigSecretName")):
            secret = await operation.garden.client.get(SECRETS, name, namespace=operation.name.namespace)
            encoded = string_map(secret.get("data")).get("kubeconfig", "")
            found[text(each.get("name"))] = base64.b64decode(encoded).decode()
    return found


async def _config_map_of(operation: ShootOperation, settings: Object, *path: str) -> str:
    """The only entry of a ConfigMap in the garden that the settings name; empty: they name none."""
    name = text(at(settings, *path))
    if not name:
        return ""
    config_map = await operation.garden.client.get(CONFIG_MAPS, name, namespace=operation.name.namespace)
    return "".join(text(each) for each in mapping(config_map.get("data")).values())


async def wait_for_api_server(operation: ShootOperation) -> None:
    """Until all its new pods are ready. Raises NotInTimeError, KubeError."""
    await _wait(operation, kube_apiserver.NAME, _API_SERVER_SECONDS)


async def deploy(operation: ShootOperation, component: str, objects: list[Object]) -> None:
    """What is to sleep goes to sleep later, all together: until then it runs if it does."""
    if operation.is_asleep:
        live = await operation.seed.client.find(DEPLOYMENTS, component, namespace=operation.technical_id)
        for each in objects:
            if each["kind"] == DEPLOYMENTS.kind:
                each["spec"]["replicas"] = integer(at(live or {}, "spec", "replicas"))
    await operation.deploy(component, objects)


async def wait_for_other(operation: ShootOperation, name: str) -> None:
    """Neither the API server nor the resource manager. Raises NotInTimeError, KubeError."""
    await _wait(operation, name, _OTHERS_SECONDS)


async def _wait(operation: ShootOperation, name: str, seconds: float) -> None:
    place, since = Key(operation.technical_id, name), operation.written(DEPLOYMENTS, name)
    await operation.waiting.until_ready(
        DEPLOYMENTS, place, deployment_unready, seconds=seconds, since=since, report=waits_for
    )


# --- controller manager


async def controller_manager(operation: ShootOperation) -> None:
    """Raises ReconcileError, KubeError."""
    await deploy(operation, kube_controller_manager.NAME, await _controller_manager_objects(operation))


async def _controller_manager_objects(operation: ShootOperation) -> list[Object]:
    values = kube_controller_manager.Values(
        namespace=operation.technical_id,
        image=operation.image_of_kubernetes(kube_controller_manager.NAME),
        version=operation.version,
        secrets=kube_controller_manager.Secrets(
            ca_bundle=bundle_name_of(operation, tables.CA.name),
            ca_client=name_of(operation, tables.CA_CLIENT.name),
            server=name_of(operation, "kube-controller-manager-server"),
            service_account_key=name_of(operation, tables.SERVICE_ACCOUNT_KEY.name),
            generic_token_kubeconfig=name_of(operation, tables.TOKEN_KUBECONFIG),
            ca_kubelet="" if operation.is_workerless else name_of(operation, tables.CA_KUBELET.name),
        ),
        service_network=foundation.service_network(operation),
        settings=mapping(at(spec(operation.shoot), "kubernetes", "kubeControllerManager")),
        apis=kube_apiserver.runtime_config(await _api_server_values(operation, Encryption(keys=[]))),
        running=operation.running,
        replicas=controller_managers(operation.shoot),
        pod_network="" if operation.is_workerless else foundation.pod_network(operation),
        autoscaled=operation.autoscaled,
    )
    return kube_controller_manager.objects(values)


async def wait_for_controller_manager(operation: ShootOperation) -> None:
    """Raises NotInTimeError, KubeError."""
    await wait_for_other(operation, kube_controller_manager.NAME)


# --- resource manager


async def deploy_resource_manager(operation: ShootOperation) -> None:
    """With a certificate until it has a token. Raises ReconcileError, KubeError."""
    if not operation.is_asleep:
        access = await token_bootstrap.access(operation)
        if await token_bootstrap.is_needed(operation, access):
            since = await token_bootstrap.forget_token(operation, access)
            await _deploy_resource_manager(operation, await KEYS.compute(token_bootstrap.secret, operation))
            await token_bootstrap.wait_for_token(operation, since=since)
    await _deploy_resource_manager(operation)


async def _deploy_resource_manager(operation: ShootOperation, *bootstrap: Object) -> None:
    """Args: bootstrap: the Secret with a certificate, which goes when it is deployed without."""
    objects = _resource_manager_objects(operation, bootstrap=token_bootstrap.SECRET if bootstrap else "")
    await deploy(operation, RESOURCE_MANAGER, [*bootstrap, *objects])


def _resource_manager_objects(operation: ShootOperation, *, bootstrap: str = "") -> list[Object]:
    image = operation.config.images.resource_manager or (_THIS_COMPUTER if operation.is_local else "")
    if not image:
        raise TerminalError("images.resourceManager is not set in the configuration of the gardenlet; set it")
    values = resource_manager.Values(
        namespace=operation.technical_id,
        image=image,
        seed_identity=text(at(operation.seed_object, "status", "clusterIdentity")),
        server_secret=name_of(operation, "gardener-resource-manager-server"),
        ca_secret=bundle_name_of(operation, tables.CA.name),
        ca_bundle=foundation.ca_bundle(operation).decode(),
        generic_token_kubeconfig=name_of(operation, tables.TOKEN_KUBECONFIG),
        bootstrap_secret=bootstrap,
        running=operation.running,
        autoscaled=operation.autoscaled,
        pods=_pods(operation),
    )
    return resource_manager.objects(values)


def _pods(operation: ShootOperation) -> Pods | None:
    """None: they are not changed, as on this computer, where they are played."""
    if operation.is_workerless or operation.is_local:
        return None
    return Pods(
        host=operation.internal.host,
        tolerations=shoot_pods.tolerations(operation.shoot),
        patience=as_object(operation.config.node_toleration),
    )


async def wait_for_resource_manager(operation: ShootOperation) -> None:
    """Raises NotInTimeError, KubeError."""
    await _wait(operation, RESOURCE_MANAGER, _API_SERVER_SECONDS)


# --- sleep and end


async def scale_down(operation: ShootOperation) -> list[str]:
    """All three, and return their names. Raises ReconcileError, KubeError."""
    await operation.deploy(RESOURCE_MANAGER, _resource_manager_objects(operation))
    await operation.deploy(kube_controller_manager.NAME, await _controller_manager_objects(operation))
    await operation.deploy(kube_apiserver.NAME, await _api_server_objects(operation))
    return [RESOURCE_MANAGER, kube_controller_manager.NAME, kube_apiserver.NAME]


async def destroy_api_server(operation: ShootOperation) -> None:
    """Raises ComponentError, KubeError."""
    await operation.shoots.drop(operation.technical_id)
    await operation.destroy(kube_apiserver.NAME, _KINDS, seconds=_GONE_SECONDS)


async def destroy_controller_manager(operation: ShootOperation) -> None:
    """Raises ComponentError, KubeError."""
    await operation.destroy(kube_controller_manager.NAME, _KINDS, seconds=_GONE_SECONDS)


async def destroy_resource_manager(operation: ShootOperation) -> None:
    """Raises ComponentError, KubeError."""
    await operation.destroy(RESOURCE_MANAGER, _KINDS, seconds=_GONE_SECONDS)
