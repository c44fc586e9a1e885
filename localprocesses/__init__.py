"""Processes of a control plane on this computer: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, KWOK.

They are ordinary processes on 127.0.0.1 and need neither root, nor a container engine, nor the network (but for the
first build). This package knows no cluster: it provides the parts of clusters.

    assets, versions          the binaries, found or built once from `controlplane/`
    pki                       certificates and kubeconfigs
    components                command lines and the files that they read
    supervisor                the process that holds the others, so that none of them is left behind
    state                     the directory of a set of processes, and whether they are alive
    local                     the error of this package, and waiting for a condition
    ports                     free ports
"""
