"""The one exception that ordinary code does not catch: a bound of this run is reached."""


class LimitReached(BaseException):
    """A bound of the run is reached; the run is to end. Not an `Exception`, so that `except Exception` lets it through."""
