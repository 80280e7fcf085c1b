"""Notifications: news elsewhere that a call waits, that a turn ended, or that a budget is nearly spent."""

from holdfast.services.notifications.deliver import (
    DeliveryFailed,
    check_target,
    deliver,
    is_safe_address,
    resolve_secret,
)
from holdfast.services.notifications.follow import Notifications, notify_about
from holdfast.services.notifications.notification import Notification, agent_waits, sample_notification
from holdfast.services.notifications.sender import NotificationSender, read_failures

__all__ = [
    "DeliveryFailed",
    "Notification",
    "NotificationSender",
    "Notifications",
    "agent_waits",
    "check_target",
    "deliver",
    "is_safe_address",
    "notify_about",
    "read_failures",
    "resolve_secret",
    "sample_notification",
]
