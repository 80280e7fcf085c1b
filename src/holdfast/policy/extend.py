"""`extends`: a policy that starts from another one.

What the new policy gives replaces what the base has, except that its rules come before the base's rules, and that its groups,
hosts and tools are added by name. A rule of the same name replaces the one of the base. Deny rules still come first.
"""

from collections.abc import Sequence, Set

import msgspec

from holdfast.policy.document import PolicyDocument, Rule


def extend(base: PolicyDocument, own: PolicyDocument, *, given: Set[str]) -> PolicyDocument:
    """The new policy on top of its base; `given` has the fields that the new policy has."""
    names = {rule.name for rule in own.rules}
    inherited = [
        msgspec.structs.replace(rule, is_inherited=True) for rule in base.rules if rule.name not in names
    ]
    return msgspec.structs.replace(
        own,
        description=own.description if "description" in given else base.description,
        allowed_operations=(
            own.allowed_operations if "operations.allow" in given else base.allowed_operations
        ),
        denied_operations=own.denied_operations if "operations.deny" in given else base.denied_operations,
        trusted_groups=own.trusted_groups if "trusted" in given else base.trusted_groups,
        host_gates=base.host_gates | own.host_gates,
        rules=deny_first([*own.rules, *inherited]),
        tools=base.tools | own.tools,
        labels=own.labels if "labels" in given else base.labels,
        sandboxes=own.sandboxes if "sandboxes" in given else base.sandboxes,
    )


def deny_first(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """The rules in the order in which they decide: deny beats every other verdict, the others keep their order."""
    return tuple(sorted(rules, key=lambda rule: rule.verdict != "deny"))
