"""Files that other programs run or trust: a change to one takes effect when a person does something unrelated.

A table, not a judgement. A proposal or a request that touches one of these files says so, and a policy names the whole set
with `executes: true`. The list is not complete: any source file runs when its program does.
"""

from functools import lru_cache
from typing import NamedTuple

from holdfast.core.globs import compile_glob


class ExecutedFile(NamedTuple):
    """A pattern, what makes the file run ("runs when you ..."), and the documentation that says so."""

    pattern: str
    when: str
    source: str


EXECUTED_FILES: tuple[ExecutedFile, ...] = tuple(
    ExecutedFile(*row)
    for row in (
        ("**/.git", "run git", "gitrepository-layout(5)"),
        ("**/.gitattributes", "check out or compare files with git", "gitattributes(5)"),
        ("**/.gitmodules", "update git submodules", "gitmodules(5)"),
        ("**/.githooks", "run git with core.hooksPath set to this folder", "githooks(5)"),
        ("**/.husky", "commit or push with git", "Husky: Get started"),
        ("**/.pre-commit-config.yaml", "commit with git", "pre-commit: Adding plugins"),
        ("**/.pre-commit-hooks.yaml", "commit with git in a project that uses these hooks", "pre-commit: New hooks"),
        ("**/lefthook.y*ml", "commit or push with git", "Lefthook: Configuration"),
        ("**/.github/workflows", "push to GitHub", "GitHub Actions: Workflow syntax"),
        ("**/.github/actions", "push to GitHub", "GitHub Actions: Metadata syntax"),
        ("**/action.y*ml", "run a workflow that uses this action", "GitHub Actions: Metadata syntax"),
        ("**/.gitlab-ci.y*ml", "push to GitLab", "GitLab: CI/CD YAML syntax"),
        ("**/.circleci", "push to a project of CircleCI", "CircleCI: Configuration reference"),
        ("**/.travis.y*ml", "push to a project of Travis CI", "Travis CI: Build config reference"),
        ("**/azure-pipelines.y*ml", "push to a project of Azure Pipelines", "Azure Pipelines: YAML schema"),
        ("**/bitbucket-pipelines.y*ml", "push to Bitbucket", "Bitbucket Pipelines: Configuration reference"),
        ("**/Jenkinsfile", "build with Jenkins", "Jenkins: Using a Jenkinsfile"),
        ("**/.envrc", "enter the folder with direnv", "direnv(1)"),
        ("**/.mise.toml", "enter the folder with mise", "mise: Configuration"),
        ("**/mise.toml", "enter the folder with mise", "mise: Configuration"),
        ("**/.vscode", "open the folder in Visual Studio Code", "VS Code: Tasks; Workspace Trust"),
        ("**/*.code-workspace", "open the workspace in Visual Studio Code", "VS Code: Multi-root workspaces"),
        ("**/.idea", "open the folder in an IDE of JetBrains", "IntelliJ IDEA: Run/debug configurations"),
        ("**/.devcontainer", "open the folder in a dev container", "Dev Containers: devcontainer.json reference"),
        ("**/.devcontainer.json", "open the folder in a dev container", "Dev Containers: devcontainer.json reference"),
        ("**/.exrc", "start vi in the folder", "Vim: 'exrc'"),
        ("**/.nvim.lua", "start Neovim in the folder", "Neovim: 'exrc'"),
        ("**/.dir-locals.el", "open a file of the folder in Emacs", "GNU Emacs: Directory variables"),
        ("**/Makefile", "run make", "GNU make: Makefile names"),
        ("**/GNUmakefile", "run make", "GNU make: Makefile names"),
        ("**/*.mk", "run make", "GNU make: Including other makefiles"),
        ("**/justfile", "run just", "just: Programmer's manual"),
        ("**/Taskfile.y*ml", "run task", "Task: Schema reference"),
        ("**/CMakeLists.txt", "configure a build with CMake", "cmake-language(7)"),
        ("**/configure", "configure a build", "GNU Autoconf: Running configure scripts"),
        ("**/Dockerfile*", "build the image", "Dockerfile reference"),
        ("**/docker-compose*.y*ml", "run docker compose", "Compose file reference"),
        ("**/compose.y*ml", "run docker compose", "Compose file reference"),
        ("**/Vagrantfile", "run vagrant", "Vagrant: Vagrantfile"),
        ("**/conftest.py", "run pytest", "pytest: conftest.py files"),
        ("**/pytest.ini", "run pytest", "pytest: Configuration file formats"),
        ("**/tox.ini", "run tox or pytest", "tox: Configuration"),
        ("**/noxfile.py", "run nox", "Nox: Configuration"),
        ("**/setup.py", "install or build the package", "setuptools: setup.py"),
        ("**/setup.cfg", "install or build the package", "setuptools: Declarative configuration"),
        ("**/pyproject.toml", "install or build the package, or run its tools", "PEP 517, PEP 518"),
        ("**/sitecustomize.py", "start Python", "Python: site"),
        ("**/usercustomize.py", "start Python", "Python: site"),
        ("**/*.pth", "start Python", "Python: site"),
        ("**/pip.conf", "install packages with pip", "pip: Configuration"),
        ("**/package.json", "install packages or run scripts with npm", "npm: scripts"),
        ("**/.npmrc", "install packages with npm", "npm: npmrc"),
        ("**/.yarnrc*", "run yarn", "Yarn: .yarnrc.yml"),
        ("**/.pnpmfile.cjs", "install packages with pnpm", "pnpm: .pnpmfile.cjs"),
        ("**/*.config.[cm]js", "run the tool that the file configures", "Vite, ESLint, webpack: Configuration files"),
        ("**/*.config.js", "run the tool that the file configures", "Vite, ESLint, webpack: Configuration files"),
        ("**/*.config.ts", "run the tool that the file configures", "Vite, ESLint, webpack: Configuration files"),
        ("**/.eslintrc*", "run ESLint", "ESLint: Configuration files"),
        ("**/Gruntfile.js", "run grunt", "Grunt: Getting started"),
        ("**/gulpfile.*", "run gulp", "gulp: JavaScript and gulpfiles"),
        ("**/build.rs", "build the crate", "Cargo: Build scripts"),
        ("**/.cargo", "run cargo", "Cargo: Configuration"),
        ("**/build.gradle*", "run gradle", "Gradle: Build file basics"),
        ("**/settings.gradle*", "run gradle", "Gradle: Settings file basics"),
        ("**/gradlew*", "run the Gradle wrapper", "Gradle: Wrapper"),
        ("**/pom.xml", "run mvn", "Maven: POM reference"),
        ("**/.mvn", "run mvn", "Maven: Configuring Maven"),
        ("**/Rakefile", "run rake", "Rake: Rakefile format"),
        ("**/Gemfile", "run bundle", "Bundler: gemfile(5)"),
        ("**/composer.json", "install packages with Composer", "Composer: Scripts"),
        ("**/flake.nix", "run nix", "nix3-flake(1)"),
        ("**/shell.nix", "run nix-shell", "nix-shell(1)"),
        ("**/default.nix", "run nix-build", "nix-build(1)"),
        ("**/.bashrc", "start a shell", "bash(1): Invocation"),
        ("**/.bash_profile", "log in", "bash(1): Invocation"),
        ("**/.bash_login", "log in", "bash(1): Invocation"),
        ("**/.bash_logout", "log out", "bash(1): Invocation"),
        ("**/.profile", "log in", "bash(1): Invocation"),
        ("**/.zshrc", "start a shell", "zsh(1): Startup/shutdown files"),
        ("**/.zshenv", "start a shell", "zsh(1): Startup/shutdown files"),
        ("**/.zprofile", "log in", "zsh(1): Startup/shutdown files"),
        ("**/.config/fish", "start a shell", "fish: Configuration files"),
        ("**/.ssh", "use ssh or log in with it", "ssh_config(5), sshd(8)"),
        ("**/.gitconfig", "run git", "git-config(1)"),
        ("**/.config/systemd", "log in", "systemd.unit(5)"),
        ("**/.config/autostart", "log in", "Desktop Application Autostart Specification"),
        ("**/.gdbinit", "start gdb in the folder", "GDB: Auto-loading"),
        ("**/.lldbinit", "start lldb in the folder", "LLDB: Man page"),
        ("**/.holdfast", "start Holdfast in the folder", "Holdfast: Settings"),
        ("**/.claude", "start Claude Code in the folder", "Claude Code: Settings; Hooks"),
        ("**/.mcp.json", "start an agent in the folder", "Claude Code: MCP"),
        ("**/.cursor", "open the folder in Cursor", "Cursor: Rules; MCP"),
        ("**/.cursorrules", "ask an agent in the folder, which follows it", "Cursor: Rules"),
        ("**/CLAUDE.md", "start an agent in the folder, which follows it", "Claude Code: Memory"),
        ("**/CLAUDE.local.md", "start an agent in the folder, which follows it", "Claude Code: Memory"),
        ("**/AGENTS.md", "start an agent in the folder, which follows it", "AGENTS.md"),
        ("**/GEMINI.md", "start an agent in the folder, which follows it", "Gemini CLI: Context files"),
        ("**/.github/copilot-instructions.md", "ask Copilot in the folder, which follows it", "GitHub Copilot: Custom instructions"),
    )
)  # fmt: skip


@lru_cache(maxsize=4096)
def runs_when(path: str) -> str | None:
    """What makes the file at a path run, as in "this runs when you ..."; None if nothing in the table does."""
    relative = path.lstrip("/")
    return next(
        (each.when for each in EXECUTED_FILES if compile_glob(each.pattern, True).matches(relative)), None
    )
