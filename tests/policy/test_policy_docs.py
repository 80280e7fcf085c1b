"""The guide is correct: its policies load, and it documents every field of a policy."""

import re
from pathlib import Path

import pytest

from holdfast.policy import lint, load_policy
from holdfast.policy.parser import POLICY_FIELDS, RULE_FIELDS

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "write-a-policy.md"
BLOCKS = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize("text", BLOCKS, ids=lambda text: text.splitlines()[0])
def test_every_policy_in_the_guide_loads_and_leaves_nothing_to_say(text: str, tmp_path: Path) -> None:
    file = tmp_path / "guide.yaml"
    file.write_text(text)
    assert lint(load_policy(str(file))) == ()


@pytest.mark.parametrize("field", sorted({*POLICY_FIELDS, *RULE_FIELDS}))
def test_the_guide_documents_every_field(field: str) -> None:
    assert re.search(rf"`{field}`|^\s*(- )?{field}:", GUIDE.read_text("utf-8"), re.MULTILINE)
