"""The option that names a store which many machines share."""

import argparse
import os

from holdfast.core.errors import InvalidInput
from holdfast.store import STORE_VARIABLE


def add_store_option(parser: argparse.ArgumentParser) -> None:
    """Add `--store URL`."""
    parser.add_argument("--store", metavar="URL", help=f"a store in PostgreSQL (default: ${STORE_VARIABLE})")


def chosen_store(arguments: argparse.Namespace) -> str:
    """The address of the store. Raises InvalidInput if none is named."""
    url: str | None = arguments.store or os.environ.get(STORE_VARIABLE)
    if not url:
        raise InvalidInput(
            "no store is named", hint=f"use --store postgresql://user@host/database, or set {STORE_VARIABLE}"
        )
    return url
