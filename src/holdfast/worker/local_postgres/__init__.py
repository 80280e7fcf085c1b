"""A PostgreSQL server of this machine, from a wheel, for trying workers and for tests. It ends with the process that started it."""

from holdfast.worker.local_postgres.server import LocalPostgres

__all__ = ["LocalPostgres"]
