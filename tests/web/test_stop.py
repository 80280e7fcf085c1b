"""Stopping `holdfast web` ends no turn of the sessions that it runs."""

import json
import time
from pathlib import Path

import pytest
from tests.cli.commands import holdfast
from tests.cli.test_task import runs, script
from tests.web.conftest import running_server
from tests.web.http import send


@pytest.mark.timeout(240)
def test_a_call_that_waits_still_waits_after_the_server_was_stopped(tmp_path: Path) -> None:
    model = script(tmp_path, runs("open('a.txt', 'w').write('x')"), "I wrote a.txt.")
    with running_server(tmp_path) as server:
        body = {"text": "write a file", "model": model, "policy": "ask-always"}
        assert send(server.url, "POST", "/api/sessions", token=server.token, body=body).status == 200
        while not send(server.url, "GET", "/api/waiting", token=server.token).data:
            time.sleep(0.05)  # the test's time limit ends it
    waiting = json.loads(holdfast("waiting", "--json", home=tmp_path).stdout)
    assert len(waiting) == 1
