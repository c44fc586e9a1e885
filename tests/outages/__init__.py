"""Outages, one after the other, and how long it takes until the product works again: `python -m tests.outages --help`.

    stage       an agent with its ManagedResource, and what shows that it works
    clusters    API servers and etcd: killed, frozen, restored; a target that is away
    access      the way there: certificates, CAs, tokens, kubeconfigs, names
    machine     clocks and memory
    admission   webhook servers that are replaced while Pods are created
    command     which of them are simulated, and the table

They report what is, and fail only if the product does not recover at all. `tests/faults/test_outages.py` plays one of each
family.
"""
