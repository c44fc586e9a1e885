"""How a gardenlet gets into its garden, and stays there: credentials, registration, what its predecessor left.

    seed_configuration      the Seed that is configured is that of the cluster in which this process runs
    access                  a kubeconfig for the garden: a stored one, or one for which a certificate is asked
    signing                 a CertificateSigningRequest, until it is signed
    stored                  the Secret that holds the kubeconfig
    bootstrap_credentials   what the first request was made with is removed
    entrance                all this, in order, at the start
    registration            the Seed in the garden, its namespace
    self_upgrade            the Gardenlet that upgrades this process, if it is to
    left_over_operations    what a predecessor has not finished is marked so
    rotation                runs on: renews the certificate, follows the kubeconfig and the garden's authority

`rules` has what follows from what: pure functions.
"""
