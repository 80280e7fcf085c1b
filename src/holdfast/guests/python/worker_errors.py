"""Errors of a lost worker. They import no engine, so a caller can handle them without loading it."""


class WorkerLost(Exception):
    """The worker has ended or is unusable. The message says why."""


class WorkerTimeout(WorkerLost):
    """The worker did not answer in time and was killed."""


class MessageTooLong(WorkerLost):
    """The kernel ended the worker, because it sent more at once than the host takes."""
