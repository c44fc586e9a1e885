"""A garden in a box: a control plane of this computer that serves the garden API.

    python -m devcluster up --garden --demo-data

`box` makes a garden of a cluster, `objects` has the applied objects: definitions, manifests, and the data next to it.
"""
