"""Real programs reach a TLS server through the proxy with their ordinary variables, and nothing else.

Each test runs on the host, and in the real sandbox, where the proxy is the only way out.
"""

import asyncio
import contextlib
import datetime
import hashlib
import io
import ipaddress
import json
import shutil
import ssl
import subprocess
import tarfile
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.commands.conftest import run_outside
from tests.commands.network.loopback_network import PUBLIC, LoopbackNetwork, ProxyUnderTest, running_proxy

from holdfast.commands import (
    CommandRequest,
    CommandSandbox,
    open_sandbox,
    probe_sandbox,
    proxy_environment,
)

HOST = "packages.example.com"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for the host that signs itself, with its key in the same file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    day = datetime.timedelta(days=1)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime.datetime.now(datetime.UTC) - day)
        .not_valid_after(datetime.datetime.now(datetime.UTC) + day)
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(HOST), x509.IPAddress(ipaddress.ip_address(PUBLIC))]),
            False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "certificate.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(signed.public_bytes(serialization.Encoding.PEM) + secret)
    return path


class FileServer:
    """Serves files by path over TLS and records what was asked for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, OSError), contextlib.closing(writer):
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ")[1].decode().partition("?")[0]
                self.asked.append(path)
                body = self.files.get(path)
                status = "404 Not Found" if body is None else "200 OK"
                kind = "application/json" if body and body.startswith(b"{") else "text/html"
                answer = (
                    f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body or b'')}\r\n\r\n"
                )
                writer.write(answer.encode() + (body or b""))
                await writer.drain()


Run = Callable[[Sequence[str], Mapping[str, str]], Awaitable[tuple[int | None, str]]]
"""Runs a program with these variables, and returns its exit code and its output."""


class Site:
    """The TLS server behind the proxy, and the way to run programs that see only the proxy."""

    def __init__(
        self, proxy: ProxyUnderTest, server: FileServer, folder: Path, run: Run, *, is_on_the_host: bool
    ) -> None:
        self.proxy = proxy
        self.server = server
        self.is_on_the_host = is_on_the_host
        self._run = run
        certificate = str(folder / "certificate.pem")
        trust = (
            "SSL_CERT_FILE",
            "PIP_CERT",
            "CURL_CA_BUNDLE",
            "GIT_SSL_CAINFO",
            "NODE_EXTRA_CA_CERTS",
            "npm_config_cafile",
            "CARGO_HTTP_CAINFO",
        )
        home = Path.home()
        self._environment = {
            "PATH": f"/usr/local/bin:/usr/bin:/bin:{home}/.cargo/bin:/usr/local/go/bin:{home}/go/bin",
            "RUSTUP_HOME": str(home / ".rustup"),
            "HOME": str(folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            **dict.fromkeys(trust, certificate),
            **proxy_environment(proxy.port),
        }  # fmt: skip

    async def run(self, *argv: str) -> tuple[int | None, str]:
        return await self._run(argv, self._environment)

    async def run_installed(self, *argv: str) -> tuple[int | None, str]:
        """The same, for a program that may be missing here."""
        code, _ = await self.run("sh", "-c", 'command -v "$1"', "sh", argv[0])
        if code != 0:
            pytest.skip(f"{argv[0]} is not installed where the test runs it")
        return await self.run(*argv)


async def run_on_the_host(
    argv: Sequence[str], environment: Mapping[str, str], *, cwd: Path
) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        *argv, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )  # fmt: skip
    try:
        output, _ = await asyncio.wait_for(process.communicate(), 60)
    except TimeoutError:
        process.kill()
        raise
    return process.returncode, output.decode()


async def run_inside(
    argv: Sequence[str], environment: Mapping[str, str], *, sandbox: CommandSandbox
) -> tuple[int | None, str]:
    output: list[bytes] = []
    request = CommandRequest(argv=tuple(argv), environment=dict(environment), timeout_seconds=50.0)
    outcome = await sandbox.run(request, on_output=output.append)
    return outcome.code, b"".join(output).decode()


@pytest.fixture(params=["host", "sandbox"])
async def site(
    request: pytest.FixtureRequest, certificate: Path, probe_folder: Path, tmp_path: Path
) -> AsyncIterator[Site]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    files = FileServer()
    server = await asyncio.start_server(files.handle, "127.0.0.1", 0, ssl=context)
    network = LoopbackNetwork()
    network.names[HOST] = [[PUBLIC]]
    network.servers[PUBLIC, 443] = server.sockets[0].getsockname()[1]
    folder = tmp_path / "workspace"
    folder.mkdir()
    shutil.copy(certificate, folder)
    async with server, contextlib.AsyncExitStack() as stack:
        run: Run = partial(run_on_the_host, cwd=folder)
        listener = None
        if request.param == "sandbox":
            status = await probe_sandbox(probe_folder)
            if status.tier != "full":
                pytest.skip(f"no full sandbox stands here: {status.missing}")
            sandbox = await open_sandbox(folder, tmp_path / "state", status=status)
            stack.push_async_callback(sandbox.close)
            listener, _ = await sandbox.listen()
            run = partial(run_inside, sandbox=sandbox)
        proxy = await stack.enter_async_context(running_proxy(network, listener=listener))
        proxy.allowed = {HOST}
        yield Site(proxy, files, folder, run, is_on_the_host=listener is None)


async def test_curl_reads_an_allowed_host_and_is_told_why_another_is_refused(site: Site) -> None:
    site.server.files["/hello"] = b"hello\n"
    assert await site.run_installed("curl", "-sS", f"https://{HOST}/hello") == (0, "hello\n")
    assert site.proxy.judged == [(HOST, 443)]
    code, output = await site.run("curl", "-sSv", "https://evil.example.com/")
    assert code == 56
    assert "403" in output
    assert "X-Holdfast: evil.example.com: not on the list" in output
    code, output = await site.run("curl", "-sS", "http://169.254.169.254/latest/meta-data/")
    assert (code, output) == (
        0,
        "Holdfast: 169.254.169.254: it is a loopback or link-local address, which programs can never reach\n",
    )


async def test_pip_installs_from_an_index_behind_the_proxy(site: Site) -> None:
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny.py", "answer = 42\n")
        archive.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        archive.writestr(
            "tiny-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr("tiny-1.0.dist-info/RECORD", "")
    site.server.files["/simple/tiny/"] = (
        b'<a href="/files/tiny-1.0-py3-none-any.whl">tiny-1.0-py3-none-any.whl</a>'
    )
    site.server.files["/files/tiny-1.0-py3-none-any.whl"] = wheel.getvalue()
    code, output = await site.run("python3", "-m", "pip", "--version")
    if code != 0:
        pytest.skip("pip is not installed where the test runs it")
    code, output = await site.run(
        "python3", "-m", "pip", "install", "--isolated", "--no-input", "--disable-pip-version-check",
        "--target", "installed", "--index-url", f"https://{HOST}/simple/", "tiny",
    )  # fmt: skip
    assert code == 0, output
    assert "Successfully installed tiny-1.0" in output
    assert set(site.proxy.network.dialled) == {(PUBLIC, 443)}


async def test_npm_installs_from_a_registry_behind_the_proxy(site: Site) -> None:
    packed = io.BytesIO()
    manifest = json.dumps({"name": "tiny", "version": "1.0.0"}).encode()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo("package/package.json")
        entry.size = len(manifest)
        archive.addfile(entry, io.BytesIO(manifest))
    tarball = packed.getvalue()
    dist = {"tarball": f"https://{HOST}/tiny/-/tiny-1.0.0.tgz", "shasum": hashlib.sha1(tarball).hexdigest()}
    versions = {"1.0.0": {"name": "tiny", "version": "1.0.0", "dist": dist}}
    site.server.files["/tiny"] = json.dumps(
        {"name": "tiny", "dist-tags": {"latest": "1.0.0"}, "versions": versions}
    ).encode()
    site.server.files["/tiny/-/tiny-1.0.0.tgz"] = tarball
    code, output = await site.run_installed(
        "npm", "install", "--no-audit", "--no-fund", "--registry", f"https://{HOST}/", "tiny"
    )
    assert code == 0, output
    assert await site.run("cat", "node_modules/tiny/package.json") == (0, manifest.decode())


async def test_cargo_fetches_from_a_registry_behind_the_proxy(site: Site, tmp_path: Path) -> None:
    packed = io.BytesIO()
    manifest = b'[package]\nname = "tiny"\nversion = "1.0.0"\nedition = "2021"\n'
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in (("Cargo.toml", manifest), ("src/lib.rs", b"pub const ANSWER: u8 = 42;\n")):
            entry = tarfile.TarInfo(f"tiny-1.0.0/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    crate = packed.getvalue()
    line = {
        "name": "tiny",
        "vers": "1.0.0",
        "deps": [],
        "cksum": hashlib.sha256(crate).hexdigest(),
        "features": {},
        "yanked": False,
    }
    site.server.files["/index/config.json"] = json.dumps({"dl": f"https://{HOST}/dl"}).encode()
    site.server.files["/index/ti/ny/tiny"] = json.dumps(line).encode()
    site.server.files["/dl/tiny/1.0.0/download"] = crate
    project = tmp_path / "workspace"
    (project / "src").mkdir()
    (project / "src/lib.rs").write_text("")
    (project / "Cargo.toml").write_text(
        '[package]\nname = "uses"\nversion = "0.1.0"\nedition = "2021"\n'
        '[dependencies]\ntiny = { version = "1", registry = "near" }\n'
    )
    (project / ".cargo").mkdir()
    (project / ".cargo/config.toml").write_text(
        f'[registries.near]\nindex = "sparse+https://{HOST}/index/"\n[net]\nretry = 0\n'
    )
    code, output = await site.run_installed("cargo", "fetch")
    assert code == 0, output
    assert "/dl/tiny/1.0.0/download" in site.server.asked
    assert set(site.proxy.network.dialled) == {(PUBLIC, 443)}


async def test_go_downloads_from_a_module_proxy_behind_the_proxy(site: Site, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("example.org/tiny@v1.0.0/go.mod", "module example.org/tiny\n")
        archive.writestr("example.org/tiny@v1.0.0/tiny.go", "package tiny\n")
    place = "/go/example.org/tiny/@v/v1.0.0"
    site.server.files[f"{place}.info"] = b'{"Version": "v1.0.0"}'
    site.server.files[f"{place}.mod"] = b"module example.org/tiny\n"
    site.server.files[f"{place}.zip"] = packed.getvalue()
    (tmp_path / "workspace/go.mod").write_text("module uses\n")
    code, output = await site.run_installed(
        "env",
        f"GOPROXY=https://{HOST}/go",
        "GOSUMDB=off",
        "GOTOOLCHAIN=local",
        "GOFLAGS=-modcacherw",
        "go",
        "get",
        "example.org/tiny@v1.0.0",
    )
    if code == 127:
        pytest.skip("go is not installed where the test runs it")
    assert code == 0, output
    assert f"{place}.zip" in site.server.asked


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
async def test_git_clones_over_https_through_the_proxy(site: Site, tmp_path: Path) -> None:
    source = tmp_path / "source"
    author = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    run_outside("git", "init", "-q", "-b", "main", str(source), cwd=tmp_path)
    run_outside("git", *author, "commit", "-q", "--allow-empty", "-m", "first", cwd=source)
    run_outside("git", "repack", "-adq", cwd=source)
    run_outside("git", "update-server-info", cwd=source)
    for path in (source / ".git").rglob("*"):
        if path.is_file():
            site.server.files[f"/repo.git/{path.relative_to(source / '.git')}"] = path.read_bytes()
    code, output = await site.run_installed("git", "clone", "-q", f"https://{HOST}/repo.git", "clone")
    assert code == 0, output
    assert await site.run("git", "-C", "clone", "log", "--format=%s") == (0, "first\n")
    code, output = await site.run("git", "clone", "-q", "https://evil.example.com/repo.git", "other")
    assert code == 128
    assert "403" in output


async def test_a_program_that_ignores_the_proxy_reaches_nothing_from_the_sandbox(site: Site) -> None:
    site.server.files["/hello"] = b"hello\n"
    port = site.proxy.network.servers[PUBLIC, 443]
    address = f"{HOST}:443:127.0.0.1:{port}"
    code, output = await site.run_installed(
        "curl", "-sS", "--noproxy", "*", "--connect-to", address, f"https://{HOST}/hello"
    )
    is_on_the_host = code == 0
    assert site.server.asked == (["/hello"] if is_on_the_host else []), output
    assert is_on_the_host == site.is_on_the_host, "the same request works where nothing confines it"
