"""The checks of `holdfast doctor`, one module a thing to look at; each gives findings, and each finding a way out."""

from holdfast.cli.checkup.examination import examine
from holdfast.cli.checkup.finding import Finding

__all__ = ["Finding", "examine"]
