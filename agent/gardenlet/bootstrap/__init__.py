"""Access to the garden: credentials, registration, and left-overs of a predecessor.

    seed_configuration      check that the configured Seed matches the cluster in which this process runs
    access                  a kubeconfig for the garden: a stored one, or one with a newly requested certificate
    signing                 a CertificateSigningRequest, until it is signed
    stored                  the Secret that holds the kubeconfig
    bootstrap_credentials   removal of the credentials of the first request
    entrance                all of this, in order, at the start
    registration            the Seed in the garden, and its namespace
    left_over_operations    unfinished operations of a predecessor are marked as aborted
    rotation                keeps running: renews the certificate, follows the kubeconfig and the garden's CA

`rules` are pure functions.
"""
