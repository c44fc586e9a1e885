"""Flows: tables of tasks that run in parallel, each as soon as its predecessors are done."""
