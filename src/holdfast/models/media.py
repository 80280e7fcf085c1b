"""Pictures and documents that models take: their media types by content, what they cost, and which provider takes which."""

import re

PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
PDF = "application/pdf"
_TAKEN: dict[str, frozenset[str]] = {
    "anthropic": PICTURES | {PDF},
    "openai": PICTURES | {PDF},
    "openai-chat": PICTURES | {PDF},
    "google": PICTURES | {PDF},
    # What a server takes depends on its model; many take pictures, and the others answer with an error.
    "ollama": PICTURES,
    "server": PICTURES,
    "scripted": PICTURES | {PDF},
}
_PICTURE_TOKENS = 1_600
"""What the large providers count for a picture that fills their limit of size."""
_PAGE_TOKENS = 2_500
_PAGE = re.compile(rb"/Type\s*/Page\b")


def media_type_of(content: bytes) -> str:
    """The media type of a picture or a PDF, by its first bytes; empty for anything else."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return PDF if content.startswith(b"%PDF-") else ""


def takes_media(model: str, media_type: str) -> bool:
    """Whether the provider of a model (`provider:name`) takes files of a media type."""
    return media_type in _TAKEN.get(model.partition(":")[0], frozenset())


def estimate_media_tokens(media_type: str, content: bytes) -> int:
    """About how many tokens a picture or a PDF costs."""
    return max(1, len(_PAGE.findall(content))) * _PAGE_TOKENS if media_type == PDF else _PICTURE_TOKENS
