"""The errors that are not bugs.

``UserError`` is the base of every error that the user can mend: its text says where, what was
expected and what was found, and the command line prints it alone and ends with exit code 2.
``CheckError`` is the base of those that say that what was checked does not hold: exit code 1.
Whatever else is raised is a bug, and shows its traceback.
"""


class UserError(ValueError):
    """Something that the user gave, or that is missing on this machine."""


class CheckError(RuntimeError):
    """A check that failed: a program that deadlocks, a comparison that isn't equal."""
