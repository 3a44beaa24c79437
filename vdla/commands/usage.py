"""The error of an option: light, since every command imports it."""


class UsageError(ValueError):
    """An option whose value makes no sense."""
