"""How a worker can be lost. Free of the engine, so that whoever handles a loss need not load it."""


class WorkerLost(Exception):
    """The worker is gone or of no more use; the message says what was seen of it."""


class WorkerTimeout(WorkerLost):
    """The worker did not come back in time and was killed."""
