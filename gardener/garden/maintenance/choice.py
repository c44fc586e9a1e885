"""Versions that fit together: of a control plane, of its worker pools, and of the images of their machines.

The control plane gets a version only if all pools can follow: each has, or gets with it, a version of Kubernetes that
is not too far behind, and an image that supports it. If a pool can't, the next version of the cloud profile is
tried; if none is left, the control plane keeps its version, and the reasons of all pools are reported.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeVar

from gardener.garden.maintenance import images, kubernetes
from gardener.garden.maintenance.images import Choice, Kubelet
from gardener.garden.maintenance.updates import Need, Offer, Update, entry
from gardener.garden.shoots import workers
from gardener.garden.versions import Version, is_too_far_behind, most_behind, parse_version
from kube.objects import Object, mappings, text
from kube.paths import at

_MOST_REASONS = 10
_REMEDY = (
    "Add versions to the CloudProfile that suit each other, or change the versions, architecture or container runtimes "
    "of the worker pools"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolVersions:
    name: str
    version: str
    """Version of Kubernetes; empty: that of the control plane."""
    kubernetes: Update | None
    image: Choice
    obstacles: tuple[str, ...] = ()
    """Reasons why the pool can't follow the control plane."""

    @property
    def failures(self) -> int:
        return sum((self.kubernetes is not None and not self.kubernetes.succeeded, self.image.has_failed))


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Versions of a Shoot."""

    control_plane: str
    update: Update | None
    pools: Sequence[PoolVersions]
    """Pools in the order of the spec."""

    @property
    def failures(self) -> int:
        return sum(pool.failures for pool in self.pools)

    @property
    def obstacles(self) -> tuple[str, ...]:
        return tuple(f'worker pool "{pool.name}": {each}' for pool in self.pools for each in pool.obstacles)


def choose(spec: Object, profile: Object, *, now: datetime) -> Versions:
    """Choose versions. Args: spec: of the Shoot; profile: the spec of its cloud profile."""
    chooser = _Chooser(
        workers=workers(spec),
        current=text(at(spec, "kubernetes", "version")),
        offered=mappings(at(profile, "kubernetes", "versions")),
        images=mappings(profile.get("machineImages")),
        auto_kubernetes=at(spec, "maintenance", "autoUpdate", "kubernetesVersion") is True,
        auto_images=at(spec, "maintenance", "autoUpdate", "machineImageVersion") is True,
        now=now,
    )
    return chooser.choose()


class _Option(Protocol):
    @property
    def failures(self) -> int: ...

    @property
    def obstacles(self) -> tuple[str, ...]: ...


T = TypeVar("T", bound=_Option)


@dataclass(slots=True)
class _Blocked:
    """Versions that are not possible, by their reasons."""

    versions: dict[tuple[str, ...], list[str]] = field(default_factory=dict)

    def __str__(self) -> str:
        groups = [f"{', '.join(versions)}: {'; '.join(_first(reasons))}" for reasons, versions in self.versions.items()]
        return "; ".join(_first(groups))


def _first(reasons: Sequence[str]) -> Iterator[str]:
    yield from reasons[:_MOST_REASONS]
    if len(reasons) > _MOST_REASONS:
        yield f"... and {len(reasons) - _MOST_REASONS} more"


def _best(tiers: Iterable[Sequence[Offer]], option: Callable[[Offer], T], blocked: _Blocked) -> T | None:
    """The best version of the first tier that has any without obstacles: the one with the fewest failures."""
    for tier in tiers:
        fitting: list[T] = []
        for offer in tier:
            found = option(offer)
            if found.obstacles:
                blocked.versions.setdefault(found.obstacles, []).append(offer.name)
                continue
            fitting.append(found)
            if not found.failures:
                break
        if fitting:
            return min(fitting, key=lambda each: each.failures)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chooser:
    workers: Sequence[Object]
    current: str
    """Version of the control plane."""
    offered: Sequence[Object]
    """Versions of Kubernetes."""
    images: Sequence[Object]
    auto_kubernetes: bool
    auto_images: bool
    now: datetime
    image_choices: dict[tuple[str, Kubelet], Choice] = field(default_factory=dict)
    """Cache: most pools of a Shoot are alike, and there are many versions to try for each."""

    def choose(self) -> Versions:
        need = self._need(self.current)
        if need is None:
            return self._staying(None)
        tiers = self._tiers(self.current, need)
        if not tiers:
            return self._staying(kubernetes.none_follows(self.current, need.reason) if need.is_forced else None)

        def option(offer: Offer) -> Versions:
            update = kubernetes.updated(self.current, offer.name, need.reason)
            pools = [self._pool(worker, offer.name, is_forced=need.is_forced) for worker in self.workers]
            return Versions(control_plane=offer.name, update=update, pools=pools)

        blocked = _Blocked()
        best = _best(tiers, option, blocked)
        if best is not None:
            return best
        why = f"no higher version of the CloudProfile suits all worker pools: {blocked}. {_REMEDY}"
        return self._staying(Update(why, need.reason, succeeded=False))

    def _staying(self, update: Update | None) -> Versions:
        pools = [self._pool(worker, self.current, is_forced=False) for worker in self.workers]
        return Versions(control_plane=self.current, update=update, pools=pools)

    def _need(self, version: str) -> Need | None:
        return kubernetes.need(version, self.offered, auto=self.auto_kubernetes, now=self.now)

    def _tiers(self, version: str, need: Need) -> list[list[Offer]]:
        return kubernetes.tiers(version, self.offered, is_forced=need.is_forced, now=self.now)

    # --- pools

    def _pool(self, worker: Object, control_plane: str, *, is_forced: bool) -> PoolVersions:
        """Versions of a pool. Args: is_forced: whether the control plane must not keep its version."""
        own, after = text(at(worker, "kubernetes", "version")), parse_version(control_plane)
        if own:
            return self._pool_with_version(worker, own, control_plane)
        return self._with_image(worker, "", None, Kubelet(parse_version(self.current), after, is_forced))

    def _pool_with_version(self, worker: Object, own: str, control_plane: str) -> PoolVersions:
        current, after = parse_version(own), parse_version(control_plane)
        need = self._need(own)
        following = [] if need is None else self._tiers(own, need)
        tiers = [(need, tier) for tier in self._capped(following, own, control_plane)]
        must_follow = current is not None and after is not None and is_too_far_behind(current, after)
        if must_follow and after is not None:
            skewed = kubernetes.within_skew(own, self.offered, after, now=self.now)
            tiers = [each for each in tiers if not any(is_too_far_behind(offer.version, after) for offer in each[1])]
            tiers += [(_behind(after), tier) for tier in skewed]
        blocked = _Blocked()
        for reason, tier in tiers:
            best = _best([tier], self._option(worker, own, reason, is_forced=must_follow), blocked)
            if best is not None:
                return best
        if must_follow and after is not None:
            return self._left_behind(worker, own, after, blocked)
        update = None
        if need is not None and blocked.versions:
            why = f"no higher version of the CloudProfile suits the worker pool: {blocked}. {_REMEDY}"
            update = Update(why, need.reason, succeeded=False)
        elif need is not None and need.is_forced and not following:
            update = kubernetes.none_follows(own, need.reason)
        return self._with_image(worker, own, update, Kubelet(current, current))

    def _option(
        self, worker: Object, own: str, need: Need | None, *, is_forced: bool
    ) -> Callable[[Offer], PoolVersions]:
        reason, is_forced = ("", is_forced) if need is None else (need.reason, is_forced or need.is_forced)

        def option(offer: Offer) -> PoolVersions:
            update = kubernetes.updated(own, offer.name, reason)
            return self._with_image(worker, offer.name, update, Kubelet(parse_version(own), offer.version, is_forced))

        return option

    def _capped(self, tiers: Sequence[Sequence[Offer]], own: str, control_plane: str) -> list[list[Offer]]:
        """Tiers without versions above that of the control plane, which takes their place if it is offered."""
        most, current = parse_version(control_plane), parse_version(own)
        if most is None or current is None:
            return []
        same = Offer(version=most, name=control_plane, is_expired=False, is_deprecated=False)
        is_offered = entry(self.offered, control_plane) is not None and most > current
        capped = [[each for each in tier if each.version <= most] for tier in tiers]
        return [tier or [same] for tier in capped if tier or is_offered]

    def _left_behind(self, worker: Object, own: str, after: Version, blocked: _Blocked) -> PoolVersions:
        most = most_behind(after)
        why = f'its Kubernetes version "{own}" would be more than {most} minor versions behind the control plane'
        others = f" ({blocked})" if blocked.versions else ""
        obstacle = f"{why}, and no higher version of the CloudProfile suits the worker pool{others}"
        found = self._with_image(worker, own, None, Kubelet(parse_version(own), parse_version(own)))
        return PoolVersions(name=found.name, version=own, kubernetes=None, image=found.image, obstacles=(obstacle,))

    def _with_image(self, worker: Object, version: str, update: Update | None, kubelet: Kubelet) -> PoolVersions:
        image = self._image(worker, kubelet)
        return PoolVersions(
            name=text(worker.get("name")),
            version=version,
            kubernetes=update,
            image=image,
            obstacles=(image.obstacle,) if image.obstacle else (),
        )

    def _image(self, worker: Object, kubelet: Kubelet) -> Choice:
        wanted = f"{worker.get('machine')} {worker.get('cri')}", kubelet
        if wanted not in self.image_choices:
            self.image_choices[wanted] = images.choose(
                worker, self.images, kubelet=kubelet, auto=self.auto_images, now=self.now
            )
        return self.image_choices[wanted]


def _behind(control_plane: Version) -> Need:
    most = most_behind(control_plane)
    reason = f"Kubernetes version of a worker pool must be at most {most} minor versions behind the control plane"
    return Need(reason, is_forced=True)
