"""Passes over the loops of a scheduled operator."""
