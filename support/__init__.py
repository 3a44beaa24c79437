"""Foundations that every room needs and no room owns: errors of users, and files that are whole or
not there.

Nothing here knows the accelerator; nothing beyond the standard library is imported.
"""
