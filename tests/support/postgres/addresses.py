"""Addresses made from the one of a database, which may be that of a socket or of a host, with or without parameters."""

import asyncio
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

SOCKET_NAME = ".s.PGSQL.5432"


def of_tenant(url: str, tenant: str) -> str:
    """The address as one tenant uses it."""
    parts = urlsplit(url)
    return parts._replace(query="&".join(filter(None, (parts.query, f"tenant={tenant}")))).geturl()


def of_user(url: str, user: str, password: str | None = None) -> str:
    """The address with another login."""
    parts = urlsplit(url)
    login = user if password is None else f"{user}:{quote(password)}"
    return parts._replace(netloc=f"{login}@{parts.netloc.rpartition('@')[2]}").geturl()


def through_socket(url: str, folder: str | Path) -> str:
    """The address by a socket in a folder, behind which a test passes the bytes on."""
    parts = urlsplit(url)
    login, at, _ = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{login}{at}", query=f"host={folder}").geturl()


async def open_server(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the server at an address, for bytes."""
    parts = urlsplit(url)
    given = parse_qs(parts.query)
    host = given.get("host", [parts.hostname or "localhost"])[0]
    port = int(given.get("port", [str(parts.port or 5432)])[0])
    if host.startswith("/"):
        return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
    return await asyncio.open_connection(host, port)
