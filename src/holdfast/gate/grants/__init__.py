"""Grants: saved approvals. What can be offered, what is in force, what is saved for every session."""

from holdfast.gate.grants.active import (
    Grants,
    check_offer,
    covers,
    describe_grant,
    describe_rule,
    folder_of,
    grant_description,
    grant_for,
    host_of,
)
from holdfast.gate.grants.added_folders import record_added_folders
from holdfast.gate.grants.offers import find_offers, folder_coverage
from holdfast.gate.grants.saved import SavedGrants

__all__ = [
    "Grants",
    "SavedGrants",
    "check_offer",
    "covers",
    "describe_grant",
    "describe_rule",
    "find_offers",
    "folder_coverage",
    "folder_of",
    "grant_description",
    "grant_for",
    "host_of",
    "record_added_folders",
]
