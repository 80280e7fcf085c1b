"""Folders that a policy names by an absolute path."""

import os
from collections.abc import Mapping


def resolve_folder(text: str, values: Mapping[str, str]) -> str:
    """A folder of a policy as an absolute path, symlinks followed; raises ValueError on anything else."""
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    if "{" in text:
        raise ValueError(f"{text!r} holds a name in braces that has no value")
    path = os.path.expanduser(text)
    if not os.path.isabs(path) or "\0" in path:
        raise ValueError(f"{text!r} is no absolute folder; for paths in the workspace use `paths`")
    return os.path.realpath(path)
