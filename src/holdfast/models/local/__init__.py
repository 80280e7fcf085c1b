"""Models on this machine: a GGUF file, run by llama.cpp in a child process, with replies that a grammar keeps valid.

Needs the extra `local`. Small models suit experiments and simple tasks; they do not replace a large model.
"""

from holdfast.models.local.model import LocalModel

__all__ = ["LocalModel"]
