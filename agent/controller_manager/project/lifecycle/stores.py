"""What is watched: Projects, and what is made for them."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent.controller_manager.project.lifecycle.rbac import Present
from kube.cache import Store
from kube.objects import Object
from kube.resources import Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    projects: Store[Object]
    namespaces: Store[Object]
    quotas: Store[Object]
    shoots: Store[Object]
    rights: Mapping[Resource, Store[Present | None]]
