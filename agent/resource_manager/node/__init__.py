"""Controllers that follow the Nodes of the target cluster.

critical_components          keep pods off a Node until what every pod needs is ready there
agent_reconciliation_delay   spread the work of node agents over time
high_availability_config     have workloads looked at again when a second Node comes or goes
"""
