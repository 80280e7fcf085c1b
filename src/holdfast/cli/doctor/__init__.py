"""The checks of `holdfast doctor`, one module a thing to look at; each gives findings, and each finding a way out."""

from holdfast.cli.doctor.finding import Finding
from holdfast.cli.doctor.run_checks import examine

__all__ = ["Finding", "examine"]
