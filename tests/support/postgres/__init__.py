"""A PostgreSQL server for tests: one for a whole test run, from a wheel, gone with the last process that uses it."""

from tests.support.postgres.addresses import SOCKET_NAME, of_tenant, of_user, open_server, through_socket
from tests.support.postgres.databases import Databases, shared_server
from tests.support.postgres.server import Server, SmallDiskServer

__all__ = [
    "SOCKET_NAME",
    "Databases",
    "Server",
    "SmallDiskServer",
    "of_tenant",
    "of_user",
    "open_server",
    "shared_server",
    "through_socket",
]
