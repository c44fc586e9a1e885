"""Admission of the garden API: rules that schemas and CEL cannot express.

A kind is a module in `kinds`: its rules, and at its end its descriptor (explained in `common.descriptor`; `project` is
the worked example). Its line in `registry` is the only entry elsewhere: routes, webhook configurations, metrics and the
table in the documentation derive from the descriptor.

    engine.py       handlers: decoding, caches, rights, answers
    lookups.py      watched kinds, and their indexes
    access.py       SubjectAccessReviews
    sizes.py        limits of object sizes
    shoot_spec/     rules of a Shoot's spec alone, which templates of Shoots follow, too
    common/         rules that several kinds share, and the parts of all of them:
        write.py        a request as rules see it: new and old object, user, the garden
        findings.py     findings of rules, the one answer made of them, and ratcheting
        descriptor.py   the descriptor, and the pass of a request through its rules
        operations.py   operation annotations and `operation.sequence`

Rules import nothing that talks to an API server.
"""
