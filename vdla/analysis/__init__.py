"""Analyses of models and machines: comparisons, their pages, lockstep, coverage."""
