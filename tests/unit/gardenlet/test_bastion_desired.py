"""Requests of a gardenlet to an extension, for a Bastion."""

import base64
import shutil
import subprocess

import pytest

from agent.gardenlet.extensions.bastion import desired
from kube.objects import Object

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIiHXbL4UoW6JeM4KqzqmN3fhDmoeXjv3R6jX8hAcWsn u@h"


def bastion(public_key: str) -> Object:
    ingress = [{"ipBlock": {"cidr": "10.1.2.0/24"}}, {"ipBlock": {"cidr": "::/0", "except": ["fd00::/8"]}}]
    return {"spec": {"providerType": "local", "sshPublicKey": public_key, "ingress": ingress}}


def test_the_extension_gets_addresses_and_a_script_with_the_key() -> None:
    wanted = desired(bastion(KEY))
    assert wanted["type"] == "local"
    assert wanted["ingress"] == [{"ipBlock": {"cidr": "10.1.2.0/24"}}, {"ipBlock": {"cidr": "::/0"}}]
    script = base64.b64decode(wanted["userData"]).decode()
    assert script.startswith("#!")
    assert f"echo '{KEY}' > /home/gardener/.ssh/authorized_keys" in script


def test_a_network_with_host_bits_is_passed_on_without_them() -> None:
    given = {"spec": {"ingress": [{"ipBlock": {"cidr": "172.16.5.0/18"}}]}}
    assert desired(given)["ingress"] == [{"ipBlock": {"cidr": "172.16.0.0/18"}}]


@pytest.mark.parametrize("public_key", ["'; rm -rf / #", "$(reboot)", "`id`\n: 'x"])
def test_a_key_can_not_leave_its_place_in_the_script(public_key: str) -> None:
    script = base64.b64decode(desired(bastion(public_key))["userData"]).decode()
    start = script.index("echo ")
    line = script[start : script.index(" > /home/gardener/.ssh/authorized_keys")]
    bash = shutil.which("bash")
    assert bash is not None
    printed = subprocess.run([bash, "-c", line], capture_output=True, text=True, check=True)
    assert printed.stdout == f"{public_key.strip()}\n"
