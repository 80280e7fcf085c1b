"""Files that other programs run or trust: a change to one takes effect when a person does something unrelated.

A table, not a judgement. A proposal or a request that touches one of these files says so, and a policy names the whole set
with `executes: true`. The list is not complete: any source file runs when its program does.
"""

from functools import lru_cache
from typing import NamedTuple

from holdfast.core.globs import casefold_path, compile_glob, normalize_path


class ExecutedFile(NamedTuple):
    """A pattern, what makes the file run ("runs when you ..."), and the documentation that says so: an address or a title."""

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
        ("**/.husky", "commit or push with git", "https://typicode.github.io/husky/get-started.html"),
        ("**/.pre-commit-config.yaml", "commit with git", "pre-commit: Adding plugins"),
        ("**/.pre-commit-hooks.yaml", "commit with git in a project that uses these hooks", "pre-commit: New hooks"),
        ("**/lefthook.*", "commit or push with git", "https://lefthook.dev/configuration"),
        ("**/.lefthook.*", "commit or push with git", "https://lefthook.dev/configuration"),
        ("**/lefthook-local.*", "commit or push with git", "https://lefthook.dev/configuration"),
        ("**/.lefthook-local.*", "commit or push with git", "https://lefthook.dev/configuration"),
        ("**/.lefthook", "commit or push with git", "https://lefthook.dev/configuration"),
        ("**/.lefthook-local", "commit or push with git", "https://lefthook.dev/configuration"),
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
        ("**/.mise.toml", "enter the folder with mise", "https://mise.jdx.dev/environments.html"),
        ("**/mise.toml", "enter the folder with mise", "https://mise.jdx.dev/hooks.html"),
        ("**/.mise", "enter the folder with mise", "https://mise.jdx.dev/cli/trust.html"),
        ("**/.vscode", "open the folder in Visual Studio Code", "https://code.visualstudio.com/docs/editing/workspaces/workspace-trust"),
        ("**/*.code-workspace", "open the workspace in Visual Studio Code", "VS Code: Multi-root workspaces"),
        ("**/.idea", "open the folder in an IDE of JetBrains", "IntelliJ IDEA: Run/debug configurations"),
        ("**/.devcontainer", "open the folder in a dev container", "Dev Containers: devcontainer.json reference"),
        ("**/.devcontainer.json", "open the folder in a dev container", "Dev Containers: devcontainer.json reference"),
        ("**/.exrc", "start vi in the folder with 'exrc' set", "Vim, Neovim: options, 'exrc'"),
        ("**/.vimrc", "start Vim, in the folder with 'exrc' set", "Vim: options, 'exrc'"),
        ("**/.gvimrc", "start Vim, in the folder with 'exrc' set", "Vim: options, 'exrc'"),
        ("**/.nvim.lua", "start Neovim in the folder with 'exrc' set", "Neovim: options, 'exrc'"),
        ("**/.nvimrc", "start Neovim in the folder with 'exrc' set", "Neovim: options, 'exrc'"),
        ("**/.dir-locals.el", "open a file of the folder in Emacs", "GNU Emacs: Directory variables"),
        ("**/Makefile", "run make", "https://www.gnu.org/software/make/manual/html_node/Makefile-Names.html"),
        ("**/GNUmakefile", "run make", "https://www.gnu.org/software/make/manual/html_node/Makefile-Names.html"),
        ("**/*.mk", "run make", "GNU make: Including other makefiles"),
        ("**/justfile", "run just", "https://docs.rs/crate/just"),
        ("**/.justfile", "run just", "just: Programmer's manual"),
        ("**/Taskfile*.y*ml", "run task", "https://taskfile.dev/docs/guide"),
        ("**/CMakeLists.txt", "configure a build with CMake", "cmake-language(7)"),
        ("**/configure", "configure a build", "GNU Autoconf: Running configure scripts"),
        ("**/Dockerfile*", "build the image", "Dockerfile reference"),
        ("**/docker-compose*.y*ml", "run docker compose", "https://docs.docker.com/compose/intro/compose-application-model/"),
        ("**/compose*.y*ml", "run docker compose", "https://docs.docker.com/compose/how-tos/multiple-compose-files/merge/"),
        ("**/Vagrantfile", "run vagrant", "Vagrant: Vagrantfile"),
        ("**/conftest.py", "run pytest", "pytest: conftest.py files"),
        ("**/pytest.ini", "run pytest", "https://docs.pytest.org/en/stable/reference/customize.html"),
        ("**/.pytest.ini", "run pytest", "https://docs.pytest.org/en/stable/reference/customize.html"),
        ("**/pytest.toml", "run pytest", "https://docs.pytest.org/en/stable/reference/customize.html"),
        ("**/.pytest.toml", "run pytest", "https://docs.pytest.org/en/stable/reference/customize.html"),
        ("**/tox.ini", "run tox or pytest", "tox: Configuration"),
        ("**/noxfile.py", "run nox", "Nox: Configuration"),
        ("**/setup.py", "install or build the package", "setuptools: setup.py"),
        ("**/setup.cfg", "install or build the package", "setuptools: Declarative configuration"),
        ("**/pyproject.toml", "install or build the package, or run its tools", "PEP 517, PEP 518"),
        ("**/sitecustomize.py", "start Python", "Python: site"),
        ("**/usercustomize.py", "start Python", "Python: site"),
        ("**/*.pth", "start Python", "Python: site"),
        ("**/pip.conf", "install packages with pip", "pip: Configuration"),
        ("**/package.json", "install packages or run scripts with npm", "https://docs.npmjs.com/cli/v11/using-npm/scripts"),
        ("**/.npmrc", "install packages with npm", "npm: npmrc"),
        ("**/.yarnrc*", "run yarn", "https://yarnpkg.com/configuration/yarnrc"),
        ("**/.yarn", "run yarn", "https://yarnpkg.com/configuration/yarnrc"),
        ("**/.pnpmfile.*", "install packages with pnpm", "https://pnpm.io/pnpmfile"),
        ("**/*.config.[cm]js", "run the tool that the file configures", "Vite, ESLint, webpack: Configuration files"),
        ("**/*.config.js", "run the tool that the file configures", "Vite, ESLint, webpack: Configuration files"),
        ("**/*.config.ts", "run the tool that the file configures", "Vite, ESLint, webpack: Configuration files"),
        ("**/.eslintrc*", "run ESLint", "https://eslint.org/docs/latest/use/configure/configuration-files-deprecated"),
        ("**/Gruntfile.js", "run grunt", "Grunt: Getting started"),
        ("**/gulpfile.*", "run gulp", "gulp: JavaScript and gulpfiles"),
        ("**/build.rs", "build the crate", "Cargo: Build scripts"),
        ("**/.cargo", "run cargo", "https://doc.rust-lang.org/cargo/reference/config.html"),
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
        ("**/.gdbinit", "start gdb", "https://man7.org/linux/man-pages/man5/gdbinit.5.html"),
        ("**/*-gdb.gdb", "debug the program beside it with gdb", "https://sourceware.org/gdb/onlinedocs/gdb/Auto_002dloading-safe-path.html"),
        ("**/*-gdb.py", "debug the program beside it with gdb", "https://sourceware.org/gdb/onlinedocs/gdb/Auto_002dloading-safe-path.html"),
        ("**/.lldbinit*", "start lldb, in the folder with --local-lldbinit", "https://man.openbsd.org/lldb.1"),
        ("**/.holdfast", "start Holdfast in the folder", "Holdfast: Settings"),
        ("**/.claude", "start Claude Code in the folder", "Claude Code: Settings; Hooks"),
        ("**/.mcp.json", "start an agent in the folder", "Claude Code: MCP"),
        ("**/.gemini", "start Gemini CLI in the folder", "https://geminicli.com/docs/cli/configuration"),
        ("**/.cursor", "open the folder in Cursor", "Cursor: Rules; MCP"),
        ("**/.cursorrules", "ask an agent in the folder, which follows it", "Cursor: Rules"),
        ("**/CLAUDE.md", "start an agent in the folder, which follows it", "Claude Code: Memory"),
        ("**/CLAUDE.local.md", "start an agent in the folder, which follows it", "Claude Code: Memory"),
        ("**/AGENTS.md", "start an agent in the folder, which follows it", "AGENTS.md"),
        ("**/GEMINI.md", "start an agent in the folder, which follows it", "Gemini CLI: Context files"),
        ("**/.github/copilot-instructions.md", "ask Copilot in the folder, which follows it", "https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-custom-instructions"),
        ("**/.github/instructions", "ask Copilot in the folder, which follows it", "https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-custom-instructions"),
    )
)  # fmt: skip


@lru_cache(maxsize=4096)
def runs_when(path: str) -> str | None:
    """What makes the file at a path run, as in "this runs when you ..."; None if nothing in the table does."""
    normal = normalize_path(path.lstrip("/"))
    if not normal:
        return None
    folded = casefold_path(normal)  # once: a proposal may have thousands of files
    return next(
        (
            each.when
            for each in EXECUTED_FILES
            if compile_glob(each.pattern, True).expression.fullmatch(folded) is not None
        ),
        None,
    )
