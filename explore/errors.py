"""The errors of a search for designs that a user can mend."""

from vdla.support.errors import UserError


class ExploreError(UserError):
    """A space, an objective, a log or a design that can't be used."""
