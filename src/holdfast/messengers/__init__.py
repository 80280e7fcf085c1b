"""Messengers: talk with sessions from a chat service, and answer there what waits."""

from holdfast.messengers.bridge import Bridge
from holdfast.messengers.contract import (
    Button,
    Incoming,
    IncomingMessage,
    Messenger,
    MessengerError,
    PressedButton,
    Receive,
)
from holdfast.messengers.serve import create_messenger, serve_messengers

__all__ = [
    "Bridge",
    "Button",
    "Incoming",
    "IncomingMessage",
    "Messenger",
    "MessengerError",
    "PressedButton",
    "Receive",
    "create_messenger",
    "serve_messengers",
]
