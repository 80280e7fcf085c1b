"""Files that other programs run or trust: a change to one takes effect when a person does something unrelated.

A table, not a judgement. A proposal or a request that touches one of these files says so, and a policy names the whole set
with `executes: true`. The list is not complete: any source file runs when its program does.
"""

from functools import lru_cache
from typing import NamedTuple

from holdfast.core.globs import casefold_path, compile_glob, normalize_path


class ExecutedFile(NamedTuple):
    """A pattern, what makes the file run ("runs when you ..."), and the documentation that says so: an address or a manual page."""

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
        ("**/.pre-commit-config.yaml", "commit with git", "https://pre-commit.com/#plugins"),
        ("**/.pre-commit-hooks.yaml", "commit with git in a project that uses these hooks", "https://pre-commit.com/#new-hooks"),
        ("**/lefthook.*", "commit or push with git", "https://lefthook.dev/configuration"),
        ("**/.lefthook.*", "commit or push with git", "https://lefthook.dev/configuration"),
        ("**/lefthook-local.*", "commit or push with git", "https://lefthook.dev/configuration"),
        ("**/.lefthook-local.*", "commit or push with git", "https://lefthook.dev/configuration"),
        ("**/.lefthook", "commit or push with git", "https://lefthook.dev/configuration"),
        ("**/.lefthook-local", "commit or push with git", "https://lefthook.dev/configuration"),
        ("**/.github/workflows", "push to GitHub", "https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax"),
        ("**/.github/actions", "push to GitHub", "https://docs.github.com/en/actions/reference/workflows-and-actions/metadata-syntax"),
        ("**/action.y*ml", "run a workflow that uses this action", "https://docs.github.com/en/actions/reference/workflows-and-actions/metadata-syntax"),
        ("**/.gitlab-ci.y*ml", "push to GitLab", "https://docs.gitlab.com/ci/yaml/"),
        ("**/.circleci", "push to a project of CircleCI", "https://circleci.com/docs/configuration-reference/"),
        ("**/.travis.y*ml", "push to a project of Travis CI", "https://docs.travis-ci.com/user/build-config-yaml"),
        ("**/azure-pipelines.y*ml", "push to a project of Azure Pipelines", "https://learn.microsoft.com/en-us/azure/devops/pipelines/yaml-schema/"),
        ("**/bitbucket-pipelines.y*ml", "push to Bitbucket", "https://support.atlassian.com/bitbucket-cloud/docs/bitbucket-pipelines-configuration-reference/"),
        ("**/Jenkinsfile", "build with Jenkins", "https://www.jenkins.io/doc/book/pipeline/jenkinsfile/"),
        ("**/.envrc", "enter the folder with direnv", "direnv(1)"),
        ("**/.mise.toml", "enter the folder with mise", "https://mise.jdx.dev/environments.html"),
        ("**/mise.toml", "enter the folder with mise", "https://mise.jdx.dev/hooks.html"),
        ("**/.mise", "enter the folder with mise", "https://mise.jdx.dev/cli/trust.html"),
        ("**/.vscode", "open the folder in Visual Studio Code", "https://code.visualstudio.com/docs/editing/workspaces/workspace-trust"),
        ("**/*.code-workspace", "open the workspace in Visual Studio Code", "https://code.visualstudio.com/docs/editor/multi-root-workspaces"),
        ("**/.idea", "open the folder in an IDE of JetBrains", "https://www.jetbrains.com/help/idea/configure-project-settings.html"),
        ("**/.devcontainer", "open the folder in a dev container", "https://containers.dev/implementors/json_reference/"),
        ("**/.devcontainer.json", "open the folder in a dev container", "https://containers.dev/implementors/json_reference/"),
        ("**/.exrc", "start vi in the folder with 'exrc' set", "https://vimhelp.org/options.txt.html#%27exrc%27"),
        ("**/.vimrc", "start Vim, in the folder with 'exrc' set", "https://vimhelp.org/options.txt.html#%27exrc%27"),
        ("**/.gvimrc", "start Vim, in the folder with 'exrc' set", "https://vimhelp.org/options.txt.html#%27exrc%27"),
        ("**/.nvim.lua", "start Neovim in the folder with 'exrc' set", "https://neovim.io/doc/user/options.html#%27exrc%27"),
        ("**/.nvimrc", "start Neovim in the folder with 'exrc' set", "https://neovim.io/doc/user/options.html#%27exrc%27"),
        ("**/.dir-locals.el", "open a file of the folder in Emacs", "https://www.gnu.org/software/emacs/manual/html_node/emacs/Directory-Variables.html"),
        ("**/Makefile", "run make", "https://www.gnu.org/software/make/manual/html_node/Makefile-Names.html"),
        ("**/GNUmakefile", "run make", "https://www.gnu.org/software/make/manual/html_node/Makefile-Names.html"),
        ("**/*.mk", "run make", "https://www.gnu.org/software/make/manual/html_node/Include.html"),
        ("**/justfile", "run just", "https://docs.rs/crate/just"),
        ("**/.justfile", "run just", "https://just.systems/man/en/"),
        ("**/Taskfile*.y*ml", "run task", "https://taskfile.dev/docs/guide"),
        ("**/CMakeLists.txt", "configure a build with CMake", "cmake-language(7)"),
        ("**/configure", "configure a build", "https://www.gnu.org/software/autoconf/manual/autoconf.html#Running-configure-Scripts"),
        ("**/configure.ac", "run autoconf", "https://www.gnu.org/software/autoconf/manual/autoconf.html#autoconf-Invocation"),
        ("**/aclocal.m4", "run autoconf", "https://www.gnu.org/software/autoconf/manual/autoconf.html#autoconf-Invocation"),
        ("**/Dockerfile*", "build the image", "https://docs.docker.com/reference/dockerfile/"),
        ("**/docker-compose*.y*ml", "run docker compose", "https://docs.docker.com/compose/intro/compose-application-model/"),
        ("**/compose*.y*ml", "run docker compose", "https://docs.docker.com/compose/how-tos/multiple-compose-files/merge/"),
        ("**/Vagrantfile", "run vagrant", "https://developer.hashicorp.com/vagrant/docs/vagrantfile"),
        ("**/conftest.py", "run pytest", "https://docs.pytest.org/en/stable/how-to/writing_plugins.html"),
        ("**/pytest.ini", "run pytest", "https://docs.pytest.org/en/stable/reference/customize.html"),
        ("**/.pytest.ini", "run pytest", "https://docs.pytest.org/en/stable/reference/customize.html"),
        ("**/pytest.toml", "run pytest", "https://docs.pytest.org/en/stable/reference/customize.html"),
        ("**/.pytest.toml", "run pytest", "https://docs.pytest.org/en/stable/reference/customize.html"),
        ("**/tox.ini", "run tox or pytest", "https://tox.wiki/en/latest/config.html"),
        ("**/noxfile.py", "run nox", "https://nox.thea.codes/en/stable/config.html"),
        ("**/setup.py", "install or build the package", "https://setuptools.pypa.io/en/latest/userguide/quickstart.html"),
        ("**/setup.cfg", "install or build the package", "https://setuptools.pypa.io/en/latest/userguide/declarative_config.html"),
        ("**/pyproject.toml", "install or build the package, or run its tools", "https://peps.python.org/pep-0517/"),
        ("**/sitecustomize.py", "start Python", "https://docs.python.org/3/library/site.html"),
        ("**/usercustomize.py", "start Python", "https://docs.python.org/3/library/site.html"),
        ("**/*.pth", "start Python", "https://docs.python.org/3/library/site.html"),
        ("**/pip.conf", "install packages with pip", "https://pip.pypa.io/en/stable/topics/configuration/"),
        ("**/package.json", "install packages or run scripts with npm", "https://docs.npmjs.com/cli/v11/using-npm/scripts"),
        ("**/.npmrc", "install packages with npm", "https://docs.npmjs.com/cli/configuring-npm/npmrc"),
        ("**/.yarnrc*", "run yarn", "https://yarnpkg.com/configuration/yarnrc"),
        ("**/.yarn", "run yarn", "https://yarnpkg.com/configuration/yarnrc"),
        ("**/.pnpmfile.*", "install packages with pnpm", "https://pnpm.io/pnpmfile"),
        ("**/*.config.[cm]js", "run the tool that the file configures", "https://vite.dev/config/"),
        ("**/*.config.js", "run the tool that the file configures", "https://vite.dev/config/"),
        ("**/*.config.ts", "run the tool that the file configures", "https://vite.dev/config/"),
        ("**/.eslintrc*", "run ESLint", "https://eslint.org/docs/latest/use/configure/configuration-files-deprecated"),
        ("**/Gruntfile.js", "run grunt", "https://gruntjs.com/getting-started"),
        ("**/gulpfile.*", "run gulp", "https://gulpjs.com/docs/en/getting-started/javascript-and-gulpfiles"),
        ("**/build.rs", "build the crate", "https://doc.rust-lang.org/cargo/reference/build-scripts.html"),
        ("**/.cargo", "run cargo", "https://doc.rust-lang.org/cargo/reference/config.html"),
        ("**/build.gradle*", "run gradle", "https://docs.gradle.org/current/userguide/build_file_basics.html"),
        ("**/settings.gradle*", "run gradle", "https://docs.gradle.org/current/userguide/settings_file_basics.html"),
        ("**/gradlew*", "run the Gradle wrapper", "https://docs.gradle.org/current/userguide/gradle_wrapper.html"),
        ("**/gradle/wrapper", "run the Gradle wrapper", "https://docs.gradle.org/current/userguide/gradle_wrapper.html"),
        ("**/pom.xml", "run mvn", "https://maven.apache.org/pom.html"),
        ("**/.mvn", "run mvn", "https://maven.apache.org/configure.html"),
        ("**/Rakefile", "run rake", "https://ruby.github.io/rake/doc/rakefile_rdoc.html"),
        ("**/Gemfile", "run bundle", "https://bundler.io/man/gemfile.5.html"),
        ("**/composer.json", "install packages with Composer", "https://getcomposer.org/doc/articles/scripts.md"),
        ("**/flake.nix", "run nix", "https://nix.dev/manual/nix/latest/command-ref/new-cli/nix3-flake"),
        ("**/shell.nix", "run nix-shell", "https://nix.dev/manual/nix/latest/command-ref/nix-shell"),
        ("**/default.nix", "run nix-build", "https://nix.dev/manual/nix/latest/command-ref/nix-build"),
        ("**/.bashrc", "start a shell", "bash(1)"),
        ("**/.bash_profile", "log in", "bash(1)"),
        ("**/.bash_login", "log in", "bash(1)"),
        ("**/.bash_logout", "log out", "bash(1)"),
        ("**/.profile", "log in", "bash(1)"),
        ("**/.zshrc", "start a shell", "zsh(1)"),
        ("**/.zshenv", "start a shell", "zsh(1)"),
        ("**/.zprofile", "log in", "zsh(1)"),
        ("**/.config/fish", "start a shell", "https://fishshell.com/docs/current/language.html#configuration-files"),
        ("**/.ssh", "use ssh or log in with it", "ssh_config(5)"),
        ("**/.gitconfig", "run git", "git-config(1)"),
        ("**/.config/systemd", "log in", "systemd.unit(5)"),
        ("**/.config/autostart", "log in", "https://specifications.freedesktop.org/autostart-spec/latest/"),
        ("**/.gdbinit", "start gdb", "https://man7.org/linux/man-pages/man5/gdbinit.5.html"),
        ("**/*-gdb.gdb", "debug the program beside it with gdb", "https://sourceware.org/gdb/onlinedocs/gdb/Auto_002dloading-safe-path.html"),
        ("**/*-gdb.py", "debug the program beside it with gdb", "https://sourceware.org/gdb/onlinedocs/gdb/Auto_002dloading-safe-path.html"),
        ("**/.lldbinit*", "start lldb, in the folder with --local-lldbinit", "https://man.openbsd.org/lldb.1"),
        ("**/.holdfast", "start Holdfast in the folder", "docs/reference/config.md"),
        ("**/.claude", "start Claude Code in the folder", "https://code.claude.com/docs/en/settings"),
        ("**/.mcp.json", "start an agent in the folder", "https://code.claude.com/docs/en/mcp"),
        ("**/.gemini", "start Gemini CLI in the folder", "https://geminicli.com/docs/cli/configuration"),
        ("**/.cursor", "open the folder in Cursor", "https://cursor.com/docs/agent/hooks"),
        ("**/.cursorrules", "ask an agent in the folder, which follows it", "https://cursor.com/docs/context/rules"),
        ("**/CLAUDE.md", "start an agent in the folder, which follows it", "https://code.claude.com/docs/en/memory"),
        ("**/CLAUDE.local.md", "start an agent in the folder, which follows it", "https://code.claude.com/docs/en/memory"),
        ("**/AGENTS.md", "start an agent in the folder, which follows it", "https://agents.md"),
        ("**/GEMINI.md", "start an agent in the folder, which follows it", "https://geminicli.com/docs/cli/gemini-md"),
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
