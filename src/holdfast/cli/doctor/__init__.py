"""The checks of `holdfast doctor`. Each module checks one subject, and each failed check suggests a fix."""

from holdfast.cli.doctor.check_result import CheckResult
from holdfast.cli.doctor.run_checks import run_checks

__all__ = ["CheckResult", "run_checks"]
