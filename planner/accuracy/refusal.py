"""Why a run cannot be judged."""


class NotJudgedError(Exception):
    """A run that cannot be judged; the text says why."""
