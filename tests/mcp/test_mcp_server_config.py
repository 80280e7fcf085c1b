"""`mcp-servers.json`: what it accepts, and the errors for what it does not."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import InvalidConfig
from holdfast.mcp import ServerSpec, load_servers, secrets_of

ENTRY = {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "."]}


def test_the_common_form_is_read() -> None:
    (spec,) = load_servers({"mcpServers": {"filesystem": ENTRY}})
    assert spec == ServerSpec(name="filesystem", command="npx", args=tuple(ENTRY["args"]))


def test_the_short_form_is_read() -> None:
    entry = {**ENTRY, "description": "files", "sandbox": {"network": False}}
    (spec,) = load_servers({"filesystem": entry})
    assert spec.description == "files"
    assert spec.sandbox is not None
    assert not spec.sandbox.has_network
    assert spec.notes == ()


def test_an_address_is_read() -> None:
    (spec,) = load_servers({"mcpServers": {"remote": {"type": "http", "url": "https://example.com/mcp"}}})
    assert spec.transport.name == "http"


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mcp-servers.json"
    path.write_text('{"mcpServers": {"time": {"command": "mcp-server-time"}}}')
    assert [spec.name for spec in load_servers(path)] == ["time"]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"a.b": ENTRY}, "a server name"),
        ({"a__b": ENTRY}, "a server name"),
        ({"../x": ENTRY}, "a server name"),
        ({"": ENTRY}, "a server name"),
        ({"gіt": ENTRY}, "a server name"),
        ({"world": ENTRY}, "this name is reserved"),
        ({"Proxy": ENTRY}, "this name is reserved"),
        ({"git": ENTRY, "GIT": ENTRY}, "look the same"),
        ({"a-b": ENTRY, "a_b": ENTRY}, "look the same"),
        ({"x": {}}, "either 'command'"),
        ({"x": {"command": "a", "url": "https://b"}}, "either 'command'"),
        ({"x": {"command": 5}}, "Expected `str`"),
        ({"x": "npx"}, "Expected `object`"),
        ({"x": {**ENTRY, "comand": "y"}}, "unknown key 'comand'"),
        ({"x": {"type": "sse", "url": "https://b"}}, "SSE"),
        ({"x": {"url": "file:///etc/passwd"}}, "https://"),
        ({"x": {"url": "http://example.com/mcp"}}, "only for this machine"),
        ({"x": {"url": "https://me:secret@example.com"}}, "password"),
        ({"x": {**ENTRY, "env": {"A": "${B}"}}}, r"uses \$\{B\}, which 'variables' does not list"),
        ({"x": {**ENTRY, "env": {"A=B": "c"}}}, "not a valid variable name"),
        ({"x": {**ENTRY, "startSeconds": 0}}, "startSeconds"),
    ],
)
def test_an_invalid_entry_is_refused_with_a_reason(entries: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidConfig, match=message):
        load_servers({"mcpServers": entries})


def test_settings_of_other_clients_have_no_effect() -> None:
    (spec,) = load_servers({"x": {**ENTRY, "autoApprove": ["*"], "alwaysAllow": ["rm"]}})
    assert len(spec.notes) == 2


def test_the_error_for_invalid_json_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mcp-servers.json"
    path.write_text("{")
    with pytest.raises(InvalidConfig, match=r"mcp-servers\.json"):
        load_servers(path)


def test_the_secrets_of_a_server_are_recognized_and_plain_settings_are_not() -> None:
    spec = ServerSpec(
        name="x",
        url="https://example.com",
        env={"A": "${TOKEN}", "API_KEY": "written-out", "MODE": "production", "PIN_KEY": "1234"},
        headers={"Authorization": "Bearer abcdefgh", "X-Place": "${FOLDER}"},
        variables=("TOKEN", "FOLDER"),
    )
    environ = {"TOKEN": "ghp_12345678", "FOLDER": "/home/ada/project"}
    assert secrets_of(spec, environ) == ("ghp_12345678", "written-out", "abcdefgh")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["command", "env", "url"]), inner)
        ),
        max_leaves=20,
    )
)
def test_no_document_breaks_the_parser(document: object) -> None:
    with contextlib.suppress(InvalidConfig):
        load_servers({"mcpServers": document})
