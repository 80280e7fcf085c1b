"""A model on this machine: any GGUF file, run by llama.cpp in a child process, with calls that a grammar holds in shape.

Needs the extra `local`. It is small: good for trying things out and for simple tasks, no match for a large model.
"""

from holdfast.models.local.installing import install_file, install_weights
from holdfast.models.local.model import LocalModel
from holdfast.models.local.weights import QWEN_CODER, WEIGHTS, Weights, WeightsPart, find_weights

__all__ = [
    "QWEN_CODER",
    "WEIGHTS",
    "LocalModel",
    "Weights",
    "WeightsPart",
    "find_weights",
    "install_file",
    "install_weights",
]
