"""Services: what every transport offers a person, as values. The command line and the web page show the same ones."""

from holdfast.services.timeline import Timeline, TimelineEntry, timeline_of
from holdfast.services.usage import USAGE_GROUPS, UsageGroup, UsageRow, total_usage, usage

__all__ = [
    "USAGE_GROUPS",
    "Timeline",
    "TimelineEntry",
    "UsageGroup",
    "UsageRow",
    "timeline_of",
    "total_usage",
    "usage",
]
