"""IronCurtain's own policy, annotations and cases, judged by us."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.policy.real_paths import RealPaths

from holdfast.core import Call, Decision, JsonObject, Tool, UrlTarget, call_id
from holdfast.policy import Request, RulePolicy, canonical_url, load_policy, targets_of, validate_arguments
from holdfast.policy.git_remotes import canonical_remote

DATA: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "policy-cases.json").read_text())
ROOTS = {"S": "sb", "A": "permA", "B": "permB", "P": "prot", "O": "other"}


def cases(kind: str) -> list[Any]:
    found = [case for case in DATA["cases"] if case["kind"] == kind]
    return [pytest.param(case, id=str(case.get("id", json.dumps(case["input"])))) for case in found]


class Ground:
    """The folder tree that the cases speak of."""

    def __init__(self, root: Path) -> None:
        self.folders = {name: root / folder for name, folder in ROOTS.items()}
        home = root / "home"
        for folder in (*self.folders.values(), self.folders["S"] / "sub", home):
            folder.mkdir()
        here, other, protected = self.folders["S"], self.folders["O"], self.folders["P"]
        (other / "f").touch()
        (protected / "k").touch()
        (root / "sbalias").symlink_to(here)
        (here / "dirlink").symlink_to(other)
        (here / "filelink").symlink_to(other / "f")
        (here / "protlink").symlink_to(protected / "k")
        (here / "dangling").symlink_to(other / "new")
        (other / "intosb").symlink_to(here / "sub")
        self.paths = RealPaths(here, protected=(protected,), home=home)
        self.policy = self._load(root)

    def _load(self, root: Path) -> RulePolicy:
        policy = DATA["policy"] | {key: DATA[key] for key in ("domainAllowlists", "trustedServers")}
        (root / "compiled-policy.json").write_text(json.dumps(policy))
        (root / "tool-annotations.json").write_text(json.dumps(DATA["annotations"]))
        return load_policy(
            str(root / "compiled-policy.json"),
            annotations=root / "tool-annotations.json",
            values={name: str(folder) for name, folder in self.folders.items()},
        )

    def put(self, value: Any) -> Any:
        """A value of the data with the folders filled in."""
        text = json.dumps(value)
        for name, folder in self.folders.items():
            text = text.replace("{" + name + "}", str(folder))
        return json.loads(text)

    def judge(self, server: str, tool_name: str, arguments: JsonObject) -> Decision:
        operation = f"{server}.{tool_name}"
        tool = self.policy.document.tools.get(operation)
        targets = targets_of(tool, arguments, self.paths) if tool is not None else ()
        call = Call(id=call_id(1, 1), operation=operation, arguments=arguments)
        return self.policy.judge(Request(call=call, tool=tool, targets=targets))


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return Ground(tmp_path_factory.mktemp("ground"))


@pytest.mark.parametrize("case", cases("policy"))
def test_a_call_gets_the_right_decision_by_the_right_rule(case: Any, ground: Ground) -> None:
    given = ground.put(case["input"])
    decision = ground.judge(given["server"], given["tool"], given["args"])
    expected = case["expect"]
    assert decision.verdict == expected["decision"], decision
    assert decision.rule == expected["rule"]
    assert list(decision.escalated_roles) == expected.get("escalatedRoles", [])


MORE: list[tuple[str, str, JsonObject, str, str]] = [
    ("filesystem", "read_file", {"path": "{S}/a"}, "allow", "structural-sandbox-allow"),
    ("filesystem", "read_file", {"path": "{S}"}, "allow", "structural-sandbox-allow"),
    ("filesystem", "write_file", {"path": "{S}/dangling", "content": ""}, "escalate", "esc-write"),
    ("filesystem", "read_file", {"path": "{P}"}, "deny", "structural-protected-path"),
    ("filesystem", "write_file", {"path": "{P}/k", "content": ""}, "deny", "structural-protected-path"),
    ("filesystem", "read_multiple_files", {"paths": ["{S}/a", "{P}/k"]}, "deny", "structural-protected-path"),
    ("filesystem", "read_multiple_files", {"paths": ["{A}/1", "{B}/1"]}, "allow", "allow-read-A"),
    ("filesystem", "read_multiple_files", {"paths": []}, "escalate", "esc-read"),
    ("filesystem", "read_file", {}, "deny", "invalid-arguments"),
    ("filesystem", "move_file", {"source": "{O}/a", "destination": "{S}/a"}, "deny", "deny-delete"),
    ("filesystem", "edit_file", {"path": "{A}/1", "edits": [], "dryRun": False}, "escalate", "esc-write"),
    ("filesystem", "list_allowed_directories", {}, "allow", "structural-introspection-allow"),
    ("git", "git_reset", {"path": "{S}"}, "escalate", "esc-git-reset"),
    ("git", "git_reset", {"path": "{O}"}, "escalate", "esc-git-reset"),
    ("git", "git_push", {"path": "{S}", "remote": "https://github.com/o/r"}, "escalate", "esc-git-remote"),
    ("git", "git_push", {"path": "{S}", "remote": "origin"}, "escalate", "structural-domain-escalate"),
    ("fetch", "http_fetch", {"url": "https://example.com/"}, "allow", "allow-fetch"),
    ("fetch", "http_fetch", {"url": "http://2130706433/"}, "escalate", "structural-domain-escalate"),
    ("fetch", "http_fetch", {"url": "http://169.254.169.254/"}, "escalate", "structural-domain-escalate"),
    ("github", "create_branch", {"owner": "ACME", "repo": "api", "branch": "x"}, "deny", "default-deny"),
]


@pytest.mark.parametrize(("server", "tool", "arguments", "verdict", "rule"), MORE)
def test_more_calls_are_judged_like_the_original_cases(
    server: str, tool: str, arguments: JsonObject, verdict: str, rule: str, ground: Ground
) -> None:
    decision = ground.judge(server, tool, ground.put(arguments))
    assert (decision.verdict, decision.rule) == (verdict, rule), decision


def test_both_roles_of_a_reset_outside_are_escalated(ground: Ground) -> None:
    decision = ground.judge("git", "git_reset", ground.put({"path": "{O}"}))
    assert decision.escalated_roles == ("read-path", "write-history")


@pytest.mark.parametrize("case", cases("arg-schema"))
def test_arguments_are_held_against_the_schema(case: Any) -> None:
    tool = Tool(name="a.b", parameters=case["input"]["schema"])
    expected = case["expect"]
    if case["input"]["args"] == {}:
        # IronCurtain lets a missing argument through; we do not.
        expected = 'Missing argument(s): "path"'
    assert validate_arguments(tool, case["input"]["args"]) == expected


def shown(target: UrlTarget) -> str:
    return target.given if target.problem else f"{target.scheme}://{target.host}{target.path}"


@pytest.mark.parametrize("case", cases("normalize-url"))
def test_a_url_has_one_form(case: Any) -> None:
    assert shown(canonical_url(case["input"])) == case["expect"]


@pytest.mark.parametrize("case", cases("git-domain"))
def test_a_remote_is_its_host_and_path(case: Any) -> None:
    remote = canonical_remote(case["input"])
    assert (remote.given if remote.problem else remote.host + remote.path) == case["expect"]


@pytest.mark.parametrize("case", cases("prepare-args"))
def test_a_path_is_judged_where_it_leads(case: Any, ground: Ground) -> None:
    given, expected = ground.put(case["input"]), ground.put(case["expect"])
    assert ground.paths.locate(given).real == expected["policy"]


def test_every_kind_of_case_but_session_ids_is_run() -> None:
    kinds = {case["kind"] for case in DATA["cases"]}
    assert kinds == {"policy", "arg-schema", "git-domain", "prepare-args", "session-id", "normalize-url"}


def test_a_rule_over_a_list_that_is_missing_never_matches(tmp_path: Path) -> None:
    rule = {
        "name": "r",
        "if": {"lists": [{"roles": ["github-owner"], "allowed": ["@gone"], "matchType": "identifiers"}]},
    }
    file = tmp_path / "compiled-policy.json"
    file.write_text(json.dumps({"rules": [rule | {"then": "allow", "reason": ""}]}))
    assert load_policy(str(file)).document.rules[-1].names[0].names == ()
    file.write_text(json.dumps({"rules": [rule | {"then": "deny", "reason": ""}]}))
    with pytest.raises(Exception, match="deny"):
        load_policy(str(file))


def test_lists_are_read_from_the_folder_of_the_policy(tmp_path: Path) -> None:
    rule = {"name": "r", "if": {"domains": {"roles": ["fetch-url"], "allowed": ["@news"]}}, "then": "allow"}
    (tmp_path / "compiled-policy.json").write_text(json.dumps({"rules": [rule]}))
    listed = {
        "values": ["a.example", "b.example"],
        "manualAdditions": ["c.example"],
        "manualRemovals": ["a.example"],
    }
    (tmp_path / "dynamic-lists.json").write_text(json.dumps({"lists": {"news": listed}}))
    hosts = load_policy(str(tmp_path / "compiled-policy.json")).document.rules[-1].hosts
    assert hosts is not None
    assert hosts.patterns == ("b.example", "c.example")


def test_a_policy_document_survives_its_json_form(ground: Ground) -> None:
    document = ground.policy.document
    assert msgspec.json.decode(msgspec.json.encode(document), type=type(document)) == document


def test_f48_an_explicit_rule_decides_about_history_inside_the_workspace(ground: Ground) -> None:
    decision = ground.judge("git", "git_reset", ground.put({"path": "{S}"}))
    assert (decision.verdict, decision.rule) == ("escalate", "esc-git-reset")
    assert decision.escalated_roles == ("write-history",)


def test_f48_a_missing_path_is_denied_and_not_a_question(ground: Ground) -> None:
    for server, tool in (("git", "git_reset"), ("filesystem", "read_file"), ("filesystem", "write_file")):
        decision = ground.judge(server, tool, {})
        assert (decision.verdict, decision.rule) == ("deny", "invalid-arguments"), (tool, decision)
