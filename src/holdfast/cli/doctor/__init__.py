"""The checks of `holdfast doctor`, one module a thing to look at; each gives findings, and each finding a way out."""

from holdfast.cli.doctor.finding import CheckResult
from holdfast.cli.doctor.run_checks import run_checks

__all__ = ["CheckResult", "run_checks"]
