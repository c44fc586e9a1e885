"""Dashboards of a seed, behind the ingress controller."""

from collections.abc import Iterator, Mapping

import yaml

from components import dashboards
from components.access import READ, role, role_binding, rule, service_account
from components.entrances import certificates, entrance, ingress
from components.parts import GARDEN, in_seed, made
from components.secrets.configs import PASSWORD, BasicAuth
from components.seed_component import SeedComponent, SeedInputs
from components.workloads import REACHES_API_SERVER, container, deployment, port, service
from gardener import conditions, keys
from gardener.references import stamp
from kube.objects import Object
from kube.resources import CONFIG_MAPS, SECRETS
from kube.yaml import Dumper

NAME = "plutono"
_LETTER = "g"
_LOGIN = BasicAuth(name="plutono-admin", user="admin")
DASHBOARD_LABEL = "dashboard.monitoring.gardener.cloud/seed"
"""Label of ConfigMaps with dashboards."""
_REFRESHER = "dashboard-refresher"
_ROLE = f"{NAME}-{_REFRESHER}"
_LABELS = {"component": NAME}
_MONITORING = {**_LABELS, "role": "monitoring"}
_PORT = 3000
_DASHBOARDS, _ADMIN = f"/var/lib/{NAME}/dashboards", f"/etc/{_REFRESHER}/{NAME}-admin"
_CONFIG = f"/usr/local/etc/{NAME}"
_SETTINGS = {
    "AUTH_ANONYMOUS_ENABLED": "true",
    "USERS_VIEWERS_CAN_EDIT": "true",
    "DATE_FORMATS_DEFAULT_TIMEZONE": "UTC",
    "AUTH_DISABLE_LOGIN_FORM": "true",
    "AUTH_DISABLE_SIGNOUT_MENU": "true",
    "ALERTING_ENABLED": "false",
    "SNAPSHOTS_EXTERNAL_ENABLED": "false",
    "PATHS_CONFIG": f"{_CONFIG}/{NAME}.ini",
}
_READS = {"logging": 3100, "prometheus-aggregate": 9090, "prometheus-seed": 9090}
"""Services, and the ports of their pods."""


def _objects(inputs: SeedInputs) -> list[Object]:
    managed = in_seed(NAME, _contents(inputs), condition=conditions.OBSERVABILITY_COMPONENTS_HEALTHY)
    return [*managed, _boards()]


def _boards() -> Object:
    """Dashboards of the seed; other ConfigMaps with the same label add more."""
    return made(
        CONFIG_MAPS,
        f"{NAME}-dashboards",
        namespace=GARDEN,
        labels={**_LABELS, DASHBOARD_LABEL: "true"},
        data=dict(dashboards.files()),
    )


def _contents(inputs: SeedInputs) -> Iterator[Object]:
    yield service_account(NAME, GARDEN, labels=_LABELS)
    yield role(_ROLE, GARDEN, rule("", "configmaps", READ), labels=_LABELS)
    yield role_binding(_ROLE, GARDEN, NAME, labels=_LABELS)
    yield from stamp([_providers(), _sources(), _config(inputs), _deployment(inputs)])
    yield service(NAME, ports=[port("web", _PORT)], selects=_LABELS, labels=_MONITORING)
    hidden = {"nginx.ingress.kubernetes.io/server-snippet": "location /api/admin/ {\n  return 403;\n}"}
    yield ingress(NAME, entrance(inputs, NAME, _LETTER), port=_PORT, annotations=hidden)


# --- files


def _file(name: str, file: str, content: Object) -> Object:
    text = yaml.dump(content, Dumper=Dumper, sort_keys=False, width=1000)
    return made(CONFIG_MAPS, f"{NAME}-{name}", namespace=GARDEN, labels=_LABELS, data={file: text})


def _providers() -> Object:
    provider = {
        "name": "default",
        "orgId": 1,
        "folder": "",
        "type": "file",
        "disableDeletion": False,
        "editable": False,
        "options": {"path": _DASHBOARDS},
    }
    return _file("dashboard-providers", "default.yaml", {"apiVersion": 1, "providers": [provider]})


def _sources() -> Object:
    interval = {"timeInterval": "1m"}
    found = [
        _source("prometheus", "prometheus", "http://prometheus-aggregate:80", interval, isDefault=True),
        _source("seed-prometheus", "prometheus", "http://prometheus-seed:80", interval),
        {
            "name": "vali",
            "type": "vali",
            "access": "proxy",
            "url": f"http://logging.{GARDEN}.svc:3100",
            "jsonData": {"maxLines": 5000},
        },
    ]
    gone = [{"name": "Graphite", "orgId": 1}]
    content = {"apiVersion": 1, "deleteDatasources": gone, "datasources": found}
    return _file("datasources", "datasources.yaml", content)


def _source(name: str, kind: str, url: str, options: Object, **fields: bool) -> Object:
    source = {"name": name, "type": kind, "access": "proxy", "url": url, "basicAuth": False, "version": 1}
    return {**source, "editable": False, "jsonData": options, **fields}


def _config(inputs: SeedInputs) -> Object:
    password = inputs.secrets.current(_LOGIN.name).data[PASSWORD].decode()
    lines = (
        *("[auth.basic]", "enabled = true", "[security]"),
        *("admin_user = admin", f"admin_password = {password}"),
    )
    content = {f"{NAME}.ini": "\n".join(lines)}
    return made(SECRETS, f"{NAME}-config", namespace=GARDEN, labels=_LABELS, type="Opaque", stringData=content)


# --- workload


def _deployment(inputs: SeedInputs) -> Object:
    sources: Mapping[str, Object] = {
        "datasources": {"configMap": {"name": f"{NAME}-datasources"}},
        "dashboard-providers": {"configMap": {"name": f"{NAME}-dashboard-providers"}},
        "config": {"secret": {"secretName": f"{NAME}-config"}},
        "admin-user": {"secret": {"secretName": inputs.secrets.current(_LOGIN.name).name}},
        "storage": {"emptyDir": {"sizeLimit": "100Mi"}},
    }
    pod = {
        "containers": [_server(inputs), _refresher(inputs)],
        "priorityClassName": "gardener-system-600",
        "serviceAccountName": NAME,
        "volumes": [{"name": name, **source} for name, source in sources.items()],
    }
    reads = {f"{keys.TO_PREFIX}{name}-tcp-{number}": keys.ALLOWED for name, number in _READS.items()}
    observed = {"observability.gardener.cloud/app": NAME}
    pod_labels = {**_MONITORING, **observed, **REACHES_API_SERVER, **reads}
    return deployment(NAME, labels=_MONITORING, selects=_LABELS, pod_labels=pod_labels, pod=pod)


def _server(inputs: SeedInputs) -> Object:
    return container(
        NAME,
        inputs.images.plutono,
        cpu="5m",
        memory="45Mi",
        env=[{"name": f"PL_{name}", "value": value} for name, value in _SETTINGS.items()],
        ports=[{"name": "web", "containerPort": _PORT}],
        volumeMounts=[
            {"name": "datasources", "mountPath": f"/etc/{NAME}/provisioning/datasources"},
            {"name": "dashboard-providers", "mountPath": f"/etc/{NAME}/provisioning/dashboards"},
            {"name": "storage", "mountPath": f"/var/lib/{NAME}"},
            {"name": "config", "mountPath": _CONFIG},
        ],
    )


def _refresher(inputs: SeedInputs) -> Object:
    """Container that copies the content of ConfigMaps into the server's directory."""
    settings = {
        "LOG_LEVEL": "INFO",
        "RESOURCE": "configmap",
        "NAMESPACE": GARDEN,
        "FOLDER": _DASHBOARDS,
        "LABEL": DASHBOARD_LABEL,
        "LABEL_VALUE": "true",
        "METHOD": "WATCH",
        "REQ_URL": f"http://localhost:{_PORT}/api/admin/provisioning/dashboards/reload",
        "REQ_METHOD": "POST",
    }
    login = [f"--req-{name}-file={_ADMIN}/{name}" for name in ("username", "password")]
    return container(
        _REFRESHER,
        inputs.images.dashboard_refresher,
        cpu="5m",
        memory="64Mi",
        command=["python", "-u", "sidecar.py", *login],
        env=[{"name": name, "value": value} for name, value in settings.items()],
        volumeMounts=[
            {"name": "storage", "mountPath": f"/var/lib/{NAME}"},
            {"name": "admin-user", "mountPath": _ADMIN},
        ],
    )


COMPONENT = SeedComponent(
    name=NAME,
    title="Plutono",
    images=["plutono", "dashboard_refresher"],
    objects=_objects,
    secrets=lambda inputs: [_LOGIN, *certificates(inputs, NAME, _LETTER)],
    is_of_garden=True,
    is_wanted=lambda inputs: bool(inputs.ingress_domain),
)
