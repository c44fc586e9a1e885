"""The controller `node-critical-components`.

A new Node has a taint that keeps ordinary pods away. It goes as soon as all components that are critical for the Node
are ready there: networking, storage drivers and the like.

    scheduling   on which Nodes a DaemonSet runs, as the DaemonSet controller decides it
    state        what is kept of Nodes, Pods, DaemonSets and CSINodes
    readiness    the checks
    reconcile    one Node: checks, Events, and the patch that removes the taint
"""
