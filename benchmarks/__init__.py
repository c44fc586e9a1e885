"""Cost of the agent: calls, time, CPU and memory, measured against a control plane of its own.

`python -m benchmarks` starts all dependencies, prints tables as it goes, ends everything, and writes the report. It is
a program, not a test: it has no thresholds, and its figures are those of the machine it runs on.

    program         agent and admission server as processes, their CPU and memory
    measuring       common parts of sections: a cluster with an agent, and a meter of the agent's usage
    workload        the ManagedResources of the load
    observer        follows them and their objects by watches, so that measuring costs the API server little
    bare            the bare reference: a client that makes the same objects and does nothing else
    reconciling     creation, change, rest, drift, restart, deletion
    starting        with an empty cluster and with many ManagedResources
    health          conditions that follow workloads
    garbage         a round of the garbage collector
    nodes           many Nodes that join at once
    tokens          tokens of many ServiceAccounts over a lifetime
    webhooks        the admission server under load, against a bare one
    garden          Shoots through the webhooks of the garden API: CPU, memory, `kubectl apply`
    controlling     the controller manager: Projects, Shoots and Seeds, idle and with single changes
    scheduling      the scheduler: many Shoots at once, full Seeds, a place that becomes free
    admission       Pods created through an API server with and without webhooks
    soak            a mixed load for a long time: whether anything grows (soak_load: the load; soak_rules: the
                    rules; soak_report; sampling: the measured values)
    scale           cost by size
    sharding        one agent against several that share the work
    plots           pictures
    report          tables
"""
