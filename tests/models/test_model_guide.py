"""The guide to models is correct: its program runs, its specs parse, its settings exist."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec

from holdfast.models import ModelSettings, parse_spec
from holdfast.models.providers import PROVIDERS

GUIDE = (Path(__file__).parents[2] / "docs/guides/models.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_program_in_the_guide_runs() -> None:
    subprocess.run([sys.executable, "-c", block("python")], check=True, capture_output=True)


def test_the_settings_in_the_guide_exist() -> None:
    table = tomllib.loads(block("toml"))["model_requests"]
    assert set(table) <= set(ModelSettings.__struct_fields__)
    msgspec.convert(table, ModelSettings)


def test_the_guide_lists_every_form_of_a_spec() -> None:
    forms = re.findall(r"^\| `([a-z-]+:[^`]*)`", GUIDE, re.MULTILINE)
    assert {parse_spec(form).provider for form in forms} == {*PROVIDERS, "local", "scripted"}
