"""The AppArmor profile that lets this interpreter use user namespaces where a distribution restricts them (Ubuntu since 24.04).

The profile confines nothing and allows one thing, `userns`, as Ubuntu's own profiles for browsers do. AppArmor finds the program by
its real path, so it holds for every program that this very interpreter runs.
"""

import os
import re
import sys

PROFILE_FILE = "/etc/apparmor.d/holdfast"
_PATTERN_LETTERS = re.compile(r'([\\*?\[\]{}^"@])')


def apparmor_profile(interpreter: str = sys.executable) -> str:
    """The text of the profile for an interpreter."""
    path = _PATTERN_LETTERS.sub(r"\\\1", os.path.realpath(interpreter))
    return (
        "abi <abi/4.0>,\n"
        "include <tunables/global>\n"
        "\n"
        f'profile holdfast "{path}" flags=(unconfined) {{\n'
        "  userns,\n"
        "  include if exists <local/holdfast>\n"
        "}\n"
    )


def apparmor_steps(interpreter: str = sys.executable) -> tuple[str, ...]:
    """What to do with the profile, and what it means."""
    return (
        f"this profile lets {os.path.realpath(interpreter)} use user namespaces, whatever program it runs; to let only"
        " Holdfast do so, install Holdfast into an environment with its own interpreter (python3 -m venv --copies)",
        f"save it: holdfast doctor --apparmor | sudo tee {PROFILE_FILE}",
        f"load it: sudo apparmor_parser -r {PROFILE_FILE}",
        "then check: holdfast doctor",
    )
