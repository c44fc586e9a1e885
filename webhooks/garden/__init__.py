"""The admission of the garden API: what schemas and CEL can't say about its kinds.

A kind is a module in `kinds`: its rules, and at its end its descriptor (`common.descriptor` explains it; `project` is
the worked example). Its line in `registry` is all that is entered elsewhere: routes, webhook configurations, metrics
and the table in the documentation derive from the descriptor.

    engine.py       handlers: decoding, caches, rights, answers
    lookups.py      what is watched, and its indexes
    access.py       SubjectAccessReviews
    sizes.py        how large objects may be
    common/         rules that several kinds share; and what all consist of:
        write.py        a request as rules see it: new and old object, user, the garden
        findings.py     what rules find, the one answer made of it, and ratcheting
        descriptor.py   the descriptor, and the pass of a request through its rules
        operations.py   operation annotations and `operation.sequence`

Rules import nothing that talks to an API server.
"""
