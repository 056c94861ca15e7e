"""The policy of a confined server: what it may reach, given its entry, its folder and its arguments."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trayapp.config.paths import find_paths
from trayapp.confinement import policy as making
from trayapp.confinement.policy import (
    LinkToSecretError,
    Policy,
    Program,
    cache_environment,
    make_policy,
    own_folders,
    scratch_folder,
)
from trayapp.model.config import Confine

pytestmark = pytest.mark.skipif(os.name != "posix", reason="paths of POSIX systems")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in (".ssh", ".config/google-chrome", ".config/app", "src/mine", "src/other", "docs", "ours"):
        (tmp_path / "home" / name).mkdir(parents=True)
    (tmp_path / "home/.ssh/id_rsa").write_text("hush")
    (tmp_path / "home/.bashrc").write_text("")
    return tmp_path / "home"


def policy(home: Path, *args: str, cwd: str = "src/mine", **confine: object) -> Policy:
    """Return the policy for `/usr/bin/env ARGS`, started in the folder `cwd` of the home."""
    program = Program(
        ("/usr/bin/env", *args),
        str(home / cwd),
        {"HOME": str(home), "PATH": "/usr/bin"},
        (str(home / "ours"),),
        (),
    )
    return make_policy(Confine(**confine), program)  # type: ignore[arg-type]


def may(policy: Policy, path: Path | str) -> str:
    """Return the most that the policy allows: `write`, `read` or an empty string."""
    where = os.path.realpath(path)
    return "write" if policy.allows(where, write=True) else "read" if policy.allows(where, write=False) else ""


@pytest.mark.requirement("confine-policy")
def test_its_folder_and_the_folders_among_its_arguments_are_written_the_system_is_read(home: Path) -> None:
    made = policy(home, f"--root={home}/docs")
    assert may(made, home / "src/mine/new") == "write"
    assert may(made, home / "docs/x") == "write"
    assert may(made, "/usr/lib/x") == "read"
    assert may(made, "/etc/hosts") == "read"
    for denied in (home, home / "src/other/x", home / ".ssh/id_rsa", home / ".bashrc", home / "ours/x", "/root/x"):
        assert may(made, denied) == "", denied


@pytest.mark.requirement("confine-policy")
def test_the_home_folder_is_no_working_folder_and_is_given_without_what_is_hidden(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # all tests share the folders between / and this home, so these may have more entries than the limit
    monkeypatch.setattr(making, "MOST_ENTRIES", 100_000)
    assert may(policy(home, cwd="."), home / "docs/x") == ""
    for made in (policy(home, str(home)), policy(home, cwd=".", write=("~",)), policy(home, "/")):
        assert may(made, home / "docs/x") == "write"
        assert may(made, home / "src/other/x") == "write"
        for denied in (home / ".ssh/id_rsa", home / ".bashrc", home / "new", home / "ours/servers.yaml"):
            assert may(made, denied) == "", denied


@pytest.mark.requirement("confine-policy")
def test_a_secret_is_given_by_its_own_name_in_the_entry_alone(home: Path) -> None:
    assert may(policy(home, str(home / ".ssh")), home / ".ssh/id_rsa") == ""
    assert may(policy(home, str(home / ".ssh/id_rsa")), home / ".ssh/id_rsa") == ""
    assert may(policy(home, cwd=".config"), home / ".config/google-chrome/x") == ""
    assert may(policy(home, cwd=".config"), home / ".config/app/x") == "write"
    assert may(policy(home, read=("~/.ssh",)), home / ".ssh/id_rsa") == "read"


@pytest.mark.requirement("confine-policy")
def test_a_programs_text_is_read_with_its_project_and_a_file_of_data_is_written_alone(home: Path) -> None:
    project = home / "src/other"
    (project / "dist").mkdir()
    (project / "package.json").write_text("{}")
    (project / "dist/index.js").write_text("")
    (home / "docs/data.db").write_text("")
    made = policy(home, f"{project}/dist/index.js", "--db", f"{home}/docs/data.db")
    assert may(made, project / "node_modules/x") == "read"
    assert may(made, home / "docs/data.db") == "write"
    assert may(made, home / "docs/else") == ""


@pytest.mark.requirement("confine-policy")
def test_what_an_interpreter_runs_is_read_whatever_its_name(home: Path) -> None:
    for name in ("server.txt", "data.txt"):
        (home / "docs" / name).write_text("")
    made = policy(home, "python3", "-u", f"{home}/docs/server.txt", f"{home}/src/other")
    assert may(made, home / "docs/server.txt") == "read"
    assert may(made, home / "src/other/x") == "write"
    made = policy(home, "python3", "-c", "pass", f"{home}/docs/data.txt")
    assert may(made, home / "docs/data.txt") == "write"


@pytest.mark.requirement("confine-links")
def test_a_link_in_a_folder_that_the_server_writes_leads_to_nothing_more(home: Path) -> None:
    (home / "src/mine/data").symlink_to(home / "src/other")
    (home / "src/mine/keys").symlink_to(home / ".ssh")
    made = policy(home, "data", "keys", f"{home}/src/mine/data")
    assert may(made, home / "src/other/x") == ""
    assert may(made, home / ".ssh/id_rsa") == ""
    (home / "elsewhere").symlink_to(home / "src/other")  # made by the user: the server cannot write in this folder
    assert may(policy(home, f"{home}/elsewhere"), home / "src/other/x") == "write"


@pytest.mark.requirement("confine-links", "confine-policy")
def test_a_link_to_an_interpreter_is_followed_where_the_server_cannot_have_made_it(home: Path, tmp_path: Path) -> None:
    project, base = home / "src/other", tmp_path / "pythons/3.12"
    for folder in (project / ".venv/bin", base / "bin", base / "lib"):
        folder.mkdir(parents=True)
    (project / "pyproject.toml").write_text("")
    (project / "server.py").write_text("")
    (base / "bin/python3").write_text("")
    (project / ".venv/bin/python").symlink_to(base / "bin/python3")
    argv = (f"{project}/.venv/bin/python", f"{project}/server.py")

    def made(cwd: Path) -> Policy:
        return make_policy(Confine(), Program(argv, str(cwd), {"HOME": str(home)}, (), ()))

    assert may(made(home), base / "lib/x") == "read"
    assert may(made(home), project / "server.py") == "read"
    assert may(made(project), base / "lib/x") == ""  # in its folder, the server itself could have made the link


@pytest.mark.requirement("confine-links", "confine-policy")
def test_the_interpreter_of_a_script_is_read_where_the_server_cannot_have_named_it(home: Path, tmp_path: Path) -> None:
    base = tmp_path / "pythons/3.12"
    for folder in (base / "bin", base / "lib", home / "tools"):
        folder.mkdir(parents=True)
    (base / "bin/python3").write_text("")
    (base / "bin/python3").chmod(0o755)
    for line in (f"#!{base}/bin/python3 -u", "#!/usr/bin/env -S python3 -u"):
        for script, seen in ((home / "tools/server", "read"), (home / "src/mine/server", "")):
            script.write_text(f"{line}\n")
            env = {"HOME": str(home), "PATH": str(base / "bin")}
            program = Program((str(script),), str(home / "src/mine"), env, (), ())
            assert may(make_policy(Confine(), program), base / "lib/x") == seen, (line, script)


@pytest.mark.requirement("confine-links", "confine-policy")
def test_an_interpreter_that_the_server_put_into_its_path_grants_nothing(home: Path) -> None:
    (home / "src/.git").mkdir()
    (home / "tools").mkdir()
    (home / "tools/server").write_text("#!/usr/bin/env tool\n")
    (home / "src/mine/tool").write_text("")
    (home / "src/mine/tool").chmod(0o755)
    env = {"HOME": str(home), "PATH": str(home / "src/mine")}
    program = Program((str(home / "tools/server"),), str(home / "src/mine"), env, (), ())
    assert may(make_policy(Confine(), program), home / "src/other/x") == ""


@pytest.mark.requirement("confine-links", "confine-policy")
def test_a_program_in_the_servers_own_cache_grants_nothing_besides_itself(home: Path, tmp_path: Path) -> None:
    cache, base = tmp_path / "cache", tmp_path / "project"
    for folder in (cache / "bin", base / "bin", base / "lib"):
        folder.mkdir(parents=True)
    (base / "bin/python3").write_text("")
    program = Program((f"{cache}/bin/s",), str(home / "src/mine"), {"HOME": str(home)}, (), (str(cache),))
    (cache / "bin/s").write_text(f"#!{base}/bin/python3\n")
    assert may(make_policy(Confine(), program), base / "lib/x") == ""
    (cache / "bin/s").unlink()
    (cache / "bin/s").symlink_to(base / "bin/python3")
    assert may(make_policy(Confine(), program), base / "lib/x") == ""


@pytest.mark.requirement("confine-policy")
def test_servers_yaml_is_ours_also_where_a_link_leads_to_it(home: Path, tmp_path: Path) -> None:
    environ = {"MULTI_MCP_HOME": str(tmp_path / "ours")}
    (tmp_path / "ours").mkdir()
    (home / "dotfiles").mkdir()
    (home / "dotfiles/servers.yaml").write_text("")
    (home / "dotfiles/other").write_text("")
    (tmp_path / "ours/servers.yaml").symlink_to(home / "dotfiles/servers.yaml")
    program = Program(("/usr/bin/env",), str(home / "src/mine"), {"HOME": str(home)}, own_folders(environ), ())
    made = make_policy(Confine(write=("~/dotfiles",)), program)
    assert [may(made, home / "dotfiles" / name) for name in ("servers.yaml", "other")] == ["", "write"]


@pytest.mark.requirement("confine-policy")
@pytest.mark.parametrize("name", [".", "..", "..."])
def test_a_server_has_its_own_cache_whatever_its_name(name: str, tmp_path: Path) -> None:
    environ = {"MULTI_MCP_HOME": str(tmp_path)}
    assert Path(scratch_folder(name, environ)).resolve().parent == tmp_path / "cache/confined"


@pytest.mark.requirement("confine-links")
def test_a_secret_with_a_second_name_in_reach_refuses_the_start(home: Path) -> None:
    (home / "src/other/key").hardlink_to(home / ".ssh/id_rsa")
    policy(home)  # no error, because this link is out of the server's reach
    (home / "src/mine/deep").mkdir()
    (home / "src/mine/deep/key").hardlink_to(home / ".ssh/id_rsa")
    with pytest.raises(LinkToSecretError) as refused:
        policy(home)
    assert refused.value.path == str(home / "src/mine/deep/key")
    assert refused.value.secret == str(home / ".ssh/id_rsa")


def test_a_program_in_a_folder_of_everybody_is_given_alone(home: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o777)
    shared.chmod(0o1777)
    (shared / "server.py").write_text("")
    (shared / "ticket").write_text("")
    made = policy(home, str(shared / "server.py"))
    assert may(made, shared / "server.py") == "read"
    assert may(made, shared / "ticket") == ""


def test_npx_uvx_and_pip_fetch_into_the_servers_own_cache() -> None:
    """Otherwise, they would read or lock the user's caches, and uvx would also use the folder of its tools."""
    own = cache_environment("/cache/s", {"HOME": "/nowhere"})
    names = ("XDG_CACHE_HOME", "npm_config_cache", "UV_CACHE_DIR", "UV_TOOL_DIR", "PIP_CACHE_DIR")
    assert own.keys() == set(names)
    assert all(f"{path}/".startswith("/cache/s/") for path in own.values())


@pytest.mark.requirement("confine-policy")
def test_our_own_folders_are_all_of_them_and_a_locked_package_is_read_alone(home: Path) -> None:
    paths = find_paths({})
    ours = (paths.config_file.parent, paths.cache_dir, paths.log_dir, paths.state_dir)
    assert set(map(str, ours)) <= set(own_folders({}))
    package, other = (home / "ours" / "packages" / name for name in ("mine", "other"))
    for folder in (package / "data", other):
        folder.mkdir(parents=True)
    argv = ("/usr/bin/env", str(package / "data"))
    program = Program(argv, str(package), {"HOME": str(home)}, (str(home / "ours"),), (), str(package))
    made = make_policy(Confine(), program)
    assert [may(made, place) for place in (package, package / "data", other)] == ["read", "read", ""]
