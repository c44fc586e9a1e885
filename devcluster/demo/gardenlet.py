"""The scenes of a seed: a gardenlet enters the garden with a token, and continues with its certificate."""

import base64
import json

import yaml

from devcluster.cluster import Cluster
from devcluster.demo.stage import Demo
from devcluster.garden.objects import NAMESPACE
from devcluster.garden.seed import CERTIFICATE_SECRET, GARDENLET, SHAPE_WITH_SHOOTS, SeedBox
from gardener import keys
from gardener.api.garden import SEEDS
from gardener.conditions import GARDENLET_READY
from gardener.garden.seeds import LEASE_NAMESPACE
from kube.clock import format_time
from kube.objects import Object, condition, mapping, text
from kube.paths import at
from kube.resources import CERTIFICATE_SIGNING_REQUESTS, LEASES, NETWORK_POLICIES, SECRETS
from kube.x509 import load_certificates
from localprocesses import supervisor

ROSEBED = "rosebed"


class GardenletScenes(Demo):
    def _show_gardenlet(self) -> tuple[SeedBox, Cluster]:
        """Return the Seed and its cluster."""
        self._screen.heading(f"Now a Seed, {ROSEBED}: another cluster, in which a gardenlet lives.")
        with self._screen.step("starting another control plane") as step:
            seed = self._cluster.below(ROSEBED, nodes=1, shape=SHAPE_WITH_SHOOTS).start()
            step.outcome = f"the cluster of the Seed is up at {seed.url}"
        box = SeedBox(self._cluster, seed, ROSEBED, shoots=True)
        box.prepare()
        self._let_it_get_a_certificate(box, seed)
        self._let_the_seed_become_ready(box, seed)
        return box, seed

    def _show_life_of_gardenlet(self, box: SeedBox, seed: Cluster) -> None:
        self._let_the_gardenlet_die(box, seed)
        self._let_the_certificate_be_renewed(box, seed)
        self._set_visible(False)

    # --- scenes

    def _let_it_get_a_certificate(self, box: SeedBox, seed: Cluster) -> None:
        token = box.give_bootstrap_token()
        self._screen.show(f"It has nothing but a bootstrap token of the garden, the Secret kube-system/{token}.")
        with self._screen.step("starting the gardenlet") as step:
            self._start(box.gardenlet)
            path = SECRETS.path(namespace=NAMESPACE, name=CERTIFICATE_SECRET)
            self._wait_for("its certificate", lambda: bool(seed.api.raw("GET", path)[0] == 200))
            step.outcome = f"the gardenlet has its certificate; its log: {box.gardenlet.log}"
        self._show_table("kubectl get certificatesigningrequests", CERTIFICATE_SIGNING_REQUESTS.path())
        self._wait_for("the token to be gone", lambda: self._is_gone(SECRETS.path(namespace="kube-system", name=token)))
        self._screen.show("The token has served its purpose: the gardenlet has deleted it.")

    def _let_the_seed_become_ready(self, box: SeedBox, seed: Cluster) -> None:
        with self._screen.step("waiting for the Seed to be reconciled") as step:
            assert box.provider is not None
            self._start(box.provider)
            self._start(box.resource_manager)
            box.wait_until_ready()
            step.outcome = f"the Seed is ready: {self._result()}"
        self._show_table("kubectl get seeds", SEEDS.path())
        self._show_table(f"kubectl get leases --namespace={LEASE_NAMESPACE}", LEASES.path(namespace=LEASE_NAMESPACE))
        policies = f"kubectl get networkpolicies --namespace={NAMESPACE}     # in the seed"
        self._show_table(policies, NETWORK_POLICIES.path(namespace=NAMESPACE), api=seed.api)

    def _let_the_gardenlet_die(self, box: SeedBox, seed: Cluster) -> None:
        self._screen.heading("The gardenlet is killed, and comes back:")
        self._programs.remove(box.gardenlet)
        supervisor.ask(seed.state, "stop", name=GARDENLET, kill=True)
        with self._screen.step("waiting for the garden to miss it") as step:
            self._wait_for("the Seed to be lost", lambda: self._is_gardenlet_ready() == "Unknown")
            step.outcome = "the Seed is lost: GardenletReady is Unknown"
        with self._screen.step("waiting for the gardenlet to be back") as step:
            self._start(box.gardenlet)
            self._wait_for("its heartbeat", lambda: self._is_gardenlet_ready() == "True")
            step.outcome = "the gardenlet is back, with the certificate that it had: GardenletReady is True"

    def _let_the_certificate_be_renewed(self, box: SeedBox, seed: Cluster) -> None:
        before = _certificate(seed)
        self._command(f"kubectl annotate seed {ROSEBED} {keys.OPERATION}=renew-kubeconfig")
        self._patch(SEEDS, {"metadata": {"annotations": {keys.OPERATION: "renew-kubeconfig"}}}, "", ROSEBED)
        with self._screen.step("waiting for another certificate") as step:
            self._wait_for(
                "the gardenlet to have it",
                lambda: _certificate(seed) != before,
                explain=box.gardenlet.log_end,
            )
            step.outcome = f"{before} is replaced by {_certificate(seed)}; nothing was restarted"

    def _set_visible(self, visible: bool) -> None:
        """Show the Seed to the scheduler, or hide it."""
        patch: Object = {"spec": {"settings": {"scheduling": {"visible": visible}}}}
        why = "it takes Shoots again" if visible else "it takes no further Shoots"
        self._command(f"kubectl patch seed {ROSEBED} --type=merge --patch='{json.dumps(patch)}'     # {why}")
        self._patch(SEEDS, patch, "", ROSEBED)

    # --- helpers

    def _result(self) -> str:
        return text(at(self._get(SEEDS, ROSEBED), "status", "lastOperation", "description"))

    def _is_gardenlet_ready(self) -> str:
        return text(mapping(condition(self._get(SEEDS, ROSEBED), GARDENLET_READY)).get("status"))

    def _is_gone(self, path: str) -> bool:
        return bool(self._api.raw("GET", path)[0] == 404)


def _certificate(seed: Cluster) -> str:
    """Certificate that the gardenlet shows the garden: serial number and end of validity."""
    secret = seed.api.get(SECRETS.path(namespace=NAMESPACE, name=CERTIFICATE_SECRET))
    kubeconfig = yaml.safe_load(base64.b64decode(secret["data"]["kubeconfig"]))
    own, *_ = load_certificates(base64.b64decode(kubeconfig["users"][0]["user"]["client-certificate-data"]))
    return f"certificate {own.serial_number:x}"[:20] + f"… (until {format_time(own.not_valid_after_utc)})"
