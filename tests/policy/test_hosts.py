"""Hosts: one form for each, and nothing local behind a star."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core import ArgumentRoles, Tool, UrlTarget, canonical_host, hosts
from holdfast.policy import LexicalPaths, canonical_url, targets_of
from holdfast.policy.git_remotes import canonical_remote
from holdfast.policy.urls import canonical_pattern, is_public, match_host

LOCAL = [
    "http://127.0.0.1/",
    "http://127.1/",
    "http://2130706433/",
    "http://0177.0.0.1/",
    "http://0x7f.1/",
    "http://0x7f000001/",
    "http://127.0.0.1./",
    "http://[::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[fd00:ec2::254]/",
    "http://[fe80::1]/",
    "http://0.0.0.0/",
    "http://0/",
    "http://10.0.0.1/",
    "http://192.168.1.1/",
    "http://172.16.0.1/",
    "http://100.100.100.200/",
    "http://169.254.169.254/latest/meta-data",
    "http://metadata.google.internal/",
    "http://localhost/",
    "http://LOCALHOST./",
    "http://a.localhost/",
    "http://printer.local/",
    "http://router/",
    "http://127.0.0.1.nip.io/",
    "http://127.0.0.1.1u.ms/",
    "http://make-10-0-0-1-rr.any.example/",
    "http://app.192-168-1-7.my.example/",
    "http://kubernetes.default.svc/",
    "http://localhost6.localdomain6/",
    "http://192.0.0.192/",
    "http://168.63.129.16/",
    "http://[::127.0.0.1]/",
    "http://[::ffff:0:127.0.0.1]/",
    "http://[64:ff9b:1::7f00:1]/",
    "http://user:pw@10.0.0.1/",
    "http://%31%32%37.0.0.1/",
    "http://１２７.0.0.1/",
    "http://127。0。0。1/",
    "file:///etc/passwd",
    "ftp://example.com/",
    "gopher://example.com/",
    "not a url",
    "example.com/x",
    "//example.com/x",
    "http://good.example\\@evil.example/",
    "http://good.example/\n",
    " http://example.com/",
    "http://exa\u200bmple.com/",
    "http://example.com:99999/",
    "http://[::1",
    "http://fe80::1%25eth0/",
    "http://256.256.256.256/",
    "http://1.2.3.4.5/",
    "http:///path",
    "https://straße.example/",
    "http://224.0.0.1/",
    "",
]


@pytest.mark.parametrize("url", LOCAL)
def test_w23_a_star_never_matches_a_local_host_or_text_that_is_not_a_url(url: str) -> None:
    target = canonical_url(url)
    assert not is_public(target)
    assert not match_host("*", target)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://EXAMPLE.com/", "example.com"),
        ("https://example.com./", "example.com"),
        ("https://bücher.example.org/", "xn--bcher-kva.example.org"),
        ("https://8.8.8.8/", "8.8.8.8"),
        ("https://0x8.0x8.0x8.0x8/", "8.8.8.8"),
        ("https://[2001:4860:4860:0:0:0:0:8888]/", "2001:4860:4860::8888"),
        ("https://user@example.com/", "example.com"),
    ],
)
def test_a_public_host_has_one_form(url: str, host: str) -> None:
    target = canonical_url(url)
    assert target.host == host
    assert match_host("*", target)


@pytest.mark.parametrize(
    ("pattern", "url", "is_match"),
    [
        ("github.com", "https://github.com/o/r", True),
        ("github.com", "https://api.github.com/", False),
        ("*.github.com", "https://api.github.com/", True),
        ("*.github.com", "https://github.com/", True),
        ("*.github.com", "https://evilgithub.com/", False),
        ("github.com", "https://github.com.evil.example/", False),
        ("github.com", "https://github.com@evil.example/", False),
        ("github.com/o/r", "https://github.com/o/r", True),
        ("github.com/o/r", "https://github.com/o/r/issues", True),
        ("github.com/o/r", "https://github.com/o/r2", False),
        ("github.com/o/r", "https://github.com/o/r/../x", False),
        ("github.com/o/r", "https://github.com/o/r/%2e%2e/x", False),
        ("github.com/o/r", "https://github.com/o/r%2f..%2fx", False),
        ("github.com/o/r", "https://github.com/%6f/%72", True),
        ("github.com/o/r", "https://github.com/O/R", False),
        ("10.0.0.1", "http://10.0.0.1/", True),
        ("10.0.0.1", "http://0xa.1/", True),
        ("::1", "http://[::1]/", True),
        ("localhost", "http://localhost:8080/", True),
        ("localhost:8080", "http://localhost:8080/", True),
        ("localhost:8080", "http://localhost:9090/", False),
        ("[::1]:80", "http://[::1]:80/", True),
        ("[::1]:80", "http://[::1]/", True),
        ("example.com:443", "https://example.com/", True),
        ("example.com:443", "http://example.com/", False),
        ("BÜCHER.example", "https://bücher.example/", True),
    ],
)
def test_a_pattern_names_hosts(pattern: str, url: str, is_match: bool) -> None:
    canonical = canonical_pattern(pattern)
    assert canonical is not None
    assert match_host(canonical, canonical_url(url)) is is_match


@pytest.mark.parametrize(
    "path",
    [
        "/admin",
        "/admin/x",
        "/%61dmin",
        "/Admin",
        "/admin%2fx",
        "/admin%5cx",
        "/admin%2f..%2fopen",
        "/open%2f..%2fadmin",
        "/open/../admin",
        "//admin/",
        "/%C4%80/../admin",
    ],
)
def test_hosts_a_deny_of_a_path_covers_every_spelling(path: str) -> None:
    assert match_host("example.com/admin", canonical_url(f"https://example.com{path}"), for_deny=True)
    assert not match_host("example.com/admin", canonical_url("https://example.com/administer"), for_deny=True)


def test_hosts_a_repository_is_named_with_and_without_its_ending() -> None:
    for pattern in ("github.com/o/r", "github.com/o/r.git"):
        for remote in ("https://github.com/o/r", "https://github.com/o/r.git/", "git@github.com:o/r.git"):
            assert match_host(pattern, canonical_remote(remote)), (pattern, remote)
    assert not match_host("github.com/o/r", canonical_remote("git@github.com:%6f/r.git"))


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "a b",
        "*.*",
        "exa*mple.com",
        "http://example.com",
        "a..b",
        "-",
        "a.example:²",
        "a.example:" + "9" * 5000,
    ],
)
def test_an_invalid_host_pattern_is_refused(pattern: str) -> None:
    assert canonical_pattern(pattern) is None


@pytest.mark.parametrize("host", ["a.example:²", "a.example:" + "9" * 5000, "a.example:99999"])
def test_a_host_with_an_impossible_port_in_a_call_is_a_target_with_a_problem(host: str) -> None:
    roles = {"host": ArgumentRoles(default=("proxy-domain",)), "port": ArgumentRoles(default=("none",))}
    tool = Tool(name="net.connect", roles=roles)
    (target,) = targets_of(tool, {"host": host, "port": 443}, LexicalPaths())
    assert isinstance(target, UrlTarget)
    assert target.problem


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_at_all_has_an_answer(text: str) -> None:
    target = canonical_url(text)
    assert (target.problem is None) == bool(target.host)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["{}", "0x{:x}", "0{:o}"]))
def test_every_way_to_write_an_address_is_the_same_address(number: int, form: str) -> None:
    dotted = ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))
    assert canonical_host(form.format(number)) == canonical_host(dotted) == dotted


@settings(deadline=None)
@given(st.text(max_size=40))
def test_a_canonical_host_stays_as_it_is(text: str) -> None:
    host = canonical_host(text)
    if host is not None:
        assert canonical_host(host) == host


@pytest.mark.parametrize("host", ["fe80::1%eth0", "fe80::1%25eth0", "2606:4700::1111%1"])
def test_an_address_with_a_scope_is_not_a_host(host: str) -> None:
    assert canonical_host(host) is None


def test_an_endless_host_is_refused_and_not_cached() -> None:
    assert canonical_host("a." * 126 + "a") is not None
    assert canonical_host("%61" * 63) == "a" * 63
    before = hosts._canonical_host.cache_info().currsize
    assert canonical_host("a" * 1_000_000) is None
    assert hosts._canonical_host.cache_info().currsize == before


@pytest.mark.parametrize(
    "host",
    [
        "metadata.goog", "METADATA.GOOG.", "a.metadata.goog", "metadata.tencentyun.com", "metadata.anything.example",
        "instance-data.us-east-1.example", "metadata.packet.net", "[fec0::1]", "[feff::1]", "[fe80::1]", "[fd00::1]", "[ff0e::1]",
        "[4000::1]", "[8000::1]", "[::1]", "[::10.0.0.1]", "[2002:a00:1::]", "[2001:0:a00:1::]", "[64:ff9b::a00:1]",
        "[2001:db8::1]", "100.100.100.200", "198.18.0.1", "240.0.0.1", "255.255.255.255", "192.0.0.192", "0.0.0.0",
        "ec2-10-0-0-1.x", "ec2-10-0-0-1.compute.example", "ip-172-31-0-1.example", "1-2-127-0-0-1.example",
        "a.10.0.0.1.example", "a-010-000-000-001.example", "a_10_0_0_1.example", "fe80--1.ipv6-literal.net",
    ],
)  # fmt: skip
def test_f49_a_star_does_not_match_a_host_that_is_not_public(host: str) -> None:
    target = canonical_url(f"https://{host}/")
    assert not match_host("*", target)
    if target.problem is None:
        assert match_host(canonical_pattern(target.host) or "", target), "a rule may still name it"


@pytest.mark.parametrize(
    "host",
    ["example.com", "my-metadata.example.com", "ec2-54-1-2-3.compute.example", "[2606:4700::1]", "8.8.8.8"],
)
def test_f49_a_star_still_matches_public_hosts(host: str) -> None:
    assert match_host("*", canonical_url(f"https://{host}/"))
