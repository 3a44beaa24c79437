"""Rewrites of a graph that is a processor's alone."""
