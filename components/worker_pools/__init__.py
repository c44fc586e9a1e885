"""Objects that turn machines of worker pools into nodes: pure.

pools             settings of a Shoot's pool, and the key of its configuration
operating_system  OperatingSystemConfigs: content of a machine at its start, and from then on
worker            the Worker object, with all pools
node_agent        Secrets for the agents on nodes in the Shoot, and their rights
"""
