"""Keeps gardenlets to what belongs to their Seeds: an authorizer, and an admission of what they write.

rules/authorize.py     which requests a gardenlet may send, by the graph of `gardener.garden.seed_graph`
rules/restriction.py   which objects it may write; rules about their content are beside it
graph.py               keeps the graph by watches; before a refusal it asks the API server
webhook.py             what API servers ask
"""
