"""Objects of the garden API as large as real ones get, and what is lost of one when it is stored."""

from typing import Any

from kube.objects import Object

POOLS, IMAGES, VERSIONS, REGIONS = 50, 5, 100, 20


def pools(pool: Object) -> list[Object]:
    """Many worker pools with everything that pools have in common use."""
    more = {
        "labels": {"team": "a", "cost-center": "4711"},
        "annotations": {"note": "n" * 100},
        "taints": [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}],
        "kubernetes": {"kubelet": {"maxPods": 200, "evictionHard": {"memoryAvailable": "5%"}}},
        "maxSurge": 2,
        "maxUnavailable": 0,
        "providerConfig": {"apiVersion": "example.com/v1", "kind": "WorkerConfig", "volume": {"iops": 3000}},
    }
    return [{**pool, **more, "name": f"pool-{number}"} for number in range(POOLS)]


def images(name: str) -> list[Object]:
    """500 versions of images, of which the first is called `name`."""
    names = [name, *(f"{name}-{number}" for number in range(1, IMAGES))]
    return [
        {
            "name": each,
            "updateStrategy": "minor",
            "versions": [
                {
                    "version": f"{1000 + number}.{number % 7}.0",
                    "architectures": ["amd64", "arm64"],
                    "classification": "supported" if number % 2 else "deprecated",
                    "expirationDate": "2999-01-01T00:00:00Z",
                    "cri": [{"name": "containerd", "containerRuntimes": [{"type": "gvisor"}]}],
                }
                for number in range(VERSIONS)
            ],
        }
        for each in names
    ]


def provider_config(profiled: list[Object]) -> Object:
    """Where the provider has each image: about a megabyte."""
    return {
        "apiVersion": "example.com/v1",
        "kind": "CloudProfileConfig",
        "machineImages": [
            {
                "name": image["name"],
                "versions": [
                    {
                        "version": version["version"],
                        "regions": [
                            {"name": f"region-{region}", "image": f"image-{region:027x}", "architecture": "amd64"}
                            for region in range(REGIONS)
                        ],
                    }
                    for version in image["versions"]
                ],
            }
            for image in profiled
        ],
    }


def lost(written: Any, stored: Any, path: str = "") -> list[str]:
    """Paths at which something else is stored than was written; what was added does not count."""
    match written, stored:
        case dict(), dict():
            return [each for name, value in written.items() for each in lost(value, stored.get(name), f"{path}.{name}")]
        case list(), list() if len(written) == len(stored):
            pairs = enumerate(zip(written, stored, strict=True))
            return [each for index, pair in pairs for each in lost(*pair, f"{path}[{index}]")]
        case _:
            return [] if written == stored else [path]
