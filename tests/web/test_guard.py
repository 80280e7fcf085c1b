"""The guard of the web server: every combination of method, host, origin, site, token and path has one right answer."""

from itertools import product

import pytest

from holdfast.web.guard import HEADERS, find_refusal

OURS = "http://127.0.0.1:7788"
ORIGINS = (OURS, "http://localhost:7788")
TOKEN = b"right-token"
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS")
HOSTS: dict[str, tuple[str, ...]] = {
    "ours": ("127.0.0.1:7788",),
    "localhost": ("localhost:7788",),
    "another name for us": ("evil.test:7788",),
    "our address as a part": ("127.0.0.1.evil.test:7788",),
    "every address": ("0.0.0.0:7788",),
    "without the port": ("127.0.0.1",),
    "another port": ("127.0.0.1:80",),
    "none": (),
    "two": ("127.0.0.1:7788", "evil.test"),
}
PAGE_ORIGINS: dict[str, tuple[str, ...]] = {
    "none": (),
    "ours": (OURS,),
    "null": ("null",),
    "another port": ("http://127.0.0.1:8000",),
    "https": ("https://127.0.0.1:7788",),
    "foreign": ("https://evil.test",),
    "two": (OURS, "https://evil.test"),
}
SITES: dict[str, tuple[str, ...]] = {
    "none given": (),
    "same-origin": ("same-origin",),
    "typed by the user": ("none",),
    "same-site": ("same-site",),
    "cross-site": ("cross-site",),
    "two": ("same-origin", "cross-site"),
}
TOKENS: dict[str, tuple[str, ...]] = {
    "none": (),
    "right": ("Bearer right-token",),
    "wrong": ("Bearer wrong-token",),
    "empty": ("Bearer ",),
    "another scheme": ("Basic right-token",),
    "two": ("Bearer right-token", "Bearer right-token"),
}
PATHS = ("/", "/static/app.js", "/api/enter", "/api/waiting", "/api/waiting/s/e", "/api/stream")


def status(
    *,
    method: str,
    path: str,
    hosts: str,
    origins: str,
    sites: str,
    tokens: str,
    more: tuple[tuple[bytes, bytes], ...] = (),
) -> int:
    """The status of the refusal; 200 if the request passes."""
    headers = [
        *((b"host", each.encode()) for each in HOSTS[hosts]),
        *((b"origin", each.encode()) for each in PAGE_ORIGINS[origins]),
        *((b"sec-fetch-site", each.encode()) for each in SITES[sites]),
        *((b"authorization", each.encode()) for each in TOKENS[tokens]),
        (b"content-type", b"application/json"),
        *more,
    ]
    refusal = find_refusal(method=method, path=path, headers=headers, origins=ORIGINS, tokens=[TOKEN])
    return 200 if refusal is None else refusal.status


def right_status(method: str, path: str, hosts: str, origins: str, sites: str, tokens: str) -> int:
    """What the answer must be, written as a list of reasons to refuse instead of as a chain of checks."""
    if hosts not in ("ours", "localhost"):
        return 421
    is_change = method not in ("GET", "HEAD")
    is_foreign = origins not in ("none", "ours") or sites in ("same-site", "cross-site", "two")
    is_unproven = is_change and (origins != "ours" or sites != "same-origin")
    if is_foreign or is_unproven:
        return 403
    needs_token = path.startswith("/api/") and path != "/api/enter"
    return 401 if needs_token and tokens != "right" else 200


def test_every_combination_has_the_right_answer() -> None:
    wrong = []
    number = 0
    for method, path, hosts, origins, sites, tokens in product(
        METHODS, PATHS, HOSTS, PAGE_ORIGINS, SITES, TOKENS
    ):
        number += 1
        found = status(method=method, path=path, hosts=hosts, origins=origins, sites=sites, tokens=tokens)
        if found != right_status(method, path, hosts, origins, sites, tokens):
            wrong.append((method, path, hosts, origins, sites, tokens, found))
    assert wrong == []
    assert number == 81_648


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("APPLICATION/JSON", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data", 415),
        ("application/jsonx", 415),
        ("", 415),
    ],
)
def test_a_change_needs_json(kind: str, expected: int) -> None:
    headers = [
        (b"host", b"127.0.0.1:7788"),
        (b"origin", OURS.encode()),
        (b"sec-fetch-site", b"same-origin"),
        (b"authorization", b"Bearer right-token"),
        (b"content-type", kind.encode()),
    ]
    found = find_refusal(method="POST", path="/api/x", headers=headers, origins=ORIGINS, tokens=[TOKEN])
    assert (200 if found is None else found.status) == expected


def test_a_link_on_another_page_opens_the_page_and_nothing_else() -> None:
    opens = ((b"sec-fetch-mode", b"navigate"), (b"sec-fetch-dest", b"document"))
    framed = ((b"sec-fetch-mode", b"navigate"), (b"sec-fetch-dest", b"iframe"))

    def follow(path: str, more: tuple[tuple[bytes, bytes], ...], method: str = "GET") -> int:
        return status(
            method=method,
            path=path,
            hosts="ours",
            origins="none",
            sites="cross-site",
            tokens="right",
            more=more,
        )

    assert follow("/", opens) == 200
    assert follow("/", framed) == 403
    assert follow("/", ()) == 403
    assert follow("/", opens, "POST") == 403
    assert follow("/api/waiting", opens) == 403
    assert follow("/static/app.js", opens) == 403


def test_without_devices_no_token_is_right() -> None:
    headers = [(b"host", b"127.0.0.1:7788"), (b"authorization", b"Bearer ")]
    refusal = find_refusal(method="GET", path="/api/waiting", headers=headers, origins=ORIGINS, tokens=[])
    assert refusal is not None
    assert refusal.status == 401


def test_the_policy_of_the_page_allows_no_foreign_code_and_no_html_strings() -> None:
    policy = HEADERS["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "trusted-types 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert not any(name.startswith("access-control") for name in HEADERS)
