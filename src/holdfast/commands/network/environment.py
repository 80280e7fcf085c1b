"""The environment variables that lead programs to the proxy."""

_DIRECT = "localhost,127.0.0.1,::1"
"""Hosts that are the sandbox's own."""


def proxy_environment(port: int) -> dict[str, str]:
    """The variables by which pip, npm, cargo, go, curl, git, Maven and Gradle find the proxy at a port of the sandbox."""
    proxy = f"http://127.0.0.1:{port}"
    java = " ".join(
        f"-D{scheme}.proxyHost=127.0.0.1 -D{scheme}.proxyPort={port}" for scheme in ("http", "https")
    )
    found = {"NODE_USE_ENV_PROXY": "1", "MAVEN_OPTS": java, "GRADLE_OPTS": java}
    found |= {f"YARN_{scheme}_PROXY": proxy for scheme in ("HTTP", "HTTPS")}
    # Some programs read only one of the two spellings: curl ignores HTTP_PROXY, which a web server could set.
    for name, value in (("http", proxy), ("https", proxy), ("all", proxy), ("no", _DIRECT)):
        found[f"{name}_proxy"] = found[f"{name.upper()}_PROXY"] = value
    return found
