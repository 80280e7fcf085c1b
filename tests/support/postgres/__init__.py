"""A PostgreSQL server for tests: one for a whole test run, from a wheel, gone with the last process that uses it."""

from tests.support.postgres.databases import Databases, shared_server
from tests.support.postgres.server import Server, SmallDiskServer

__all__ = ["Databases", "Server", "SmallDiskServer", "shared_server"]
