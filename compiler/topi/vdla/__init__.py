"""Operators for the accelerator: expression and schedule, one operator family per file."""
