"""Attacks that a program has to bear: run against a real one on this computer, bounded in number and time."""
