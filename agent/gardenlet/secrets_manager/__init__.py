"""Keys and certificates of a control plane, kept in Secrets of its namespace.

    secrets = await SecretsManager.open(client, namespace, asked=rotations, now=now)
    ca = await secrets.generate(CA)
    server = await secrets.generate(Certificate(name="kube-apiserver", ca="ca", ...))
    ...
    await secrets.clean_up()

What a Secret holds is described by a config (`rules/configs.py`; `tables.py` has those of Gardener). The name of the
Secret has a hash of its config, so that another config, another authority or a rotation is another Secret, and the Pods
that mount it are replaced. A Secret never changes.

A pass reads all Secrets once. A Secret of the right name is used. Else one that holds what the config asks for is
adopted, whatever the hash in its name: other programs, and other releases, compute other hashes. Else it is made,
beside the event loop. After a flow that has asked for everything, what was not asked for is deleted.

`rules` is pure: names and labels, when what is rotated, what a Secret holds.
"""
