"""Keys and certificates of a control plane, kept in Secrets of its namespace.

    secrets = await SecretsManager.open(client, namespace, clock=clock)
    ca = await secrets.generate(CA)
    server = await secrets.generate(SignedCertificate(name="kube-apiserver", authority="ca", ...))
    ...
    await secrets.clean_up()

A config describes the content of a Secret (`rules/configs.py`; `tables.py` has those of Gardener). The name of the
Secret has a hash of its config, so that another config, another CA or a rotation results in another Secret, and the
Pods that mount it are replaced. A Secret never changes.

A pass reads all Secrets once. A Secret of the right name is used. Otherwise one whose content fits the config is
adopted, even with another hash in its name: other programs and releases compute other hashes. Otherwise it is
generated, outside of the event loop. After a flow that has generated everything, other Secrets are deleted.

`rules` is pure: names and labels, rotation times, contents of Secrets.
"""
