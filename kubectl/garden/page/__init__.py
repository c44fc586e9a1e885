"""A local page with the Shoots, Seeds and ManagedResources that a user may see, problems first.

rows        a row of the list for each object (pure)
reading     the objects of all named clusters, read with the credentials of the user's kubeconfigs
server      paths, and what is shown at each

It listens on 127.0.0.1 and only reads. Its address contains a random token, since other users of the same computer can
connect to the port as well.
"""
