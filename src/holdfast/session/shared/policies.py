"""Policies of sessions that machines share: kept in the store under their digest, so that every machine judges by the same one.

The digest of a policy is that of its document as JSON, so the document is a blob, and the event that names the digest keeps it.
"""

from pathlib import Path

import msgspec

from holdfast.core import canonical
from holdfast.core.errors import HoldfastError, InvalidConfig, JournalDamaged
from holdfast.policy import Policy, PolicyDocument, RulePolicy
from holdfast.session.options import load_session_policy
from holdfast.session.status import Status
from holdfast.store import Store


async def keep_policy(store: Store, policy: Policy) -> None:
    """Keep a policy for other machines. One that a program made of its own classes is the program's to bring along."""
    if isinstance(policy, RulePolicy):
        await store.put_blob(canonical(policy.document))


async def recorded_policy(
    store: Store, status: Status, *, policies: Path, owns_folder: bool
) -> Policy | None:
    """The policy that a session was opened with, from this machine or from the store; None if it has none yet.

    Raises InvalidConfig if neither has it: a policy of this machine with the same name is another one.
    """
    if not status.policy:
        return None
    try:
        _, policy = load_session_policy(status.policy, policies=policies, owns_folder=owns_folder)
        if policy.digest == status.policy_digest:
            return policy
    except HoldfastError:
        pass  # it is a file of another machine
    try:
        document = msgspec.json.decode(await store.blob(status.policy_digest), type=PolicyDocument)
    except (JournalDamaged, msgspec.MsgspecError) as problem:
        raise _not_here(status) from problem
    found = RulePolicy(document)
    if found.digest != status.policy_digest:
        raise _not_here(status)
    return found


def _not_here(status: Status) -> InvalidConfig:
    return InvalidConfig(
        f"the policy {status.policy!r} of this session is not on this machine, nor in the store",
        hint="choose a policy with -p, or resume the session where it was started",
    )
