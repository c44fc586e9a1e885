"""Flows: tables of tasks that run side by side, each as soon as those before it are done."""
