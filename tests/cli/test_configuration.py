"""The configuration file: which value counts, where it comes from, and what is refused."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

import mtosi_jms as mtosi
from mtosi_jms.cli import main
from mtosi_jms.errors import ConfigError
from mtosi_jms.transport.settings import CONFIG, ENVIRONMENT, VARIABLES, provider

SECRET = "hunter2-in-the-file"

Write = Callable[..., Path]


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No variable is set, and the working folder is a new one."""
    for name in (*VARIABLES, CONFIG, ENVIRONMENT):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str, name: str = "mtosi-jms.toml") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


FILE = """
environment = "dev"
client_id = "noc"

[environments.dev]
url = "memory:dev"

[environments.prod]
url = "stomp+ssl://broker:61612"
user = "noc-prod"
password_file = "secrets/broker"
names = "jndi.properties"
options = { send_timeout = 10, prefetch = 1 }
"""


def test_each_process_that_shares_the_file_has_its_own_client_id(write: Write) -> None:
    write('client_id = "noc-{host}-{pid}"\n[environments.dev]\nurl = "memory:dev"\n')
    with mtosi.connect(environment="dev") as connection:
        assert connection.client_id == f"noc-{socket.gethostname()}-{os.getpid()}"


def test_a_connection_of_an_environment(write: Write) -> None:
    write(FILE)
    write("queue.jms/EmsOS=EMS.OS\n", "jndi.properties")
    with mtosi.connect() as connection, mtosi.connect("memory:dev") as same:
        consumer = same.session().consumer(mtosi.Queue("Q"))
        same.start()
        connection.session().send(mtosi.Queue("Q"), mtosi.JmsMessage(body=b"<a/>"))
        assert consumer.receive(timeout=10) is not None
    meant = provider(environment="prod")
    assert meant.url == "stomp+ssl://broker:61612"
    assert Path(meant.names) == Path.cwd() / "jndi.properties"
    password_file = str(Path.cwd() / "secrets" / "broker")
    assert meant.options == {
        "user": "noc-prod",
        "password_file": password_file,
        "client_id": "noc",
        "send_timeout": 10,
        "prefetch": 1,
    }


def test_the_call_comes_first_then_variables_then_the_file(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(FILE)
    monkeypatch.setenv("MTOSI_JMS_USER", "from-variable")
    monkeypatch.setenv(ENVIRONMENT, "prod")
    meant = provider(given={"send_timeout": 5, "client_id": None})
    place = f"{path}, environment prod"
    assert "user" not in meant.options
    assert "send_timeout" not in meant.options
    assert meant.sources["user"] == "MTOSI_JMS_USER"
    assert meant.sources["url"] == meant.sources["client_id"] == place
    assert meant.sources["send_timeout"] == "the call"


def test_a_login_of_the_file_goes_to_no_other_provider(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write(FILE)
    meant = provider("stomp://elsewhere:61613", environment="prod")
    assert not {"user", "password_file", "ca_file"} & set(meant.options)
    monkeypatch.setenv("MTOSI_JMS_URL", "stomp://elsewhere:61613")
    meant = provider(environment="prod")
    assert meant.url == "stomp://elsewhere:61613"
    assert not {"user", "password_file", "ca_file"} & set(meant.options)


def test_a_url_of_a_call_needs_no_file(write: Write) -> None:
    write("this is not TOML")
    with mtosi.connect("memory:alone") as connection:
        assert connection.names.names() == {}


def test_a_project_file_and_a_folder_above(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write('[tool.mtosi-jms]\nurl = "memory:project"\n', "pyproject.toml")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert provider().url == "memory:project"
    (below / "pyproject.toml").write_text("[tool.other]\n", encoding="utf-8")
    assert provider().url == "memory:project"
    other = below / "other.toml"
    other.write_text('url = "memory:named"\n', encoding="utf-8")
    monkeypatch.setenv(CONFIG, str(other))
    assert provider().url == "memory:named"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("url = ", "mtosi-jms.toml: Invalid value"),
        ("urll = 'memory:'", "unknown key 'urll'; did you mean url?"),
        ("url = 5", "url must be text"),
        ("environments = 5", "environments must be tables"),
        ("environment = 'staging'\n[environments.prod]\n", "there is no environment 'staging'; there are prod"),
        (f"password = '{SECRET}'", "a password has no place here"),
        (f"[environments.prod.options]\npassword = '{SECRET}'", "environments.prod: a password has no place here"),
        (f"url = 'stomp://noc:{SECRET}@broker:61613'", "the URL has a password in it"),
    ],
)
def test_what_is_refused(write: Write, text: str, said: str) -> None:
    write(text)
    with pytest.raises(ConfigError, match=r"mtosi-jms\.toml") as refused:
        provider()
    assert said in str(refused.value)
    assert SECRET not in str(refused.value)


def test_an_environment_without_a_file() -> None:
    with pytest.raises(ConfigError, match=r"there is no mtosi-jms\.toml here"):
        mtosi.connect(environment="prod")
    with pytest.raises(ConfigError, match="no URL: give one"):
        mtosi.connect()


def test_commands_take_the_same_file(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["queue", "count", "queue:EMS.OS"]) == 2
    assert "no JMS provider: give --url" in capsys.readouterr().err
    write(FILE)
    assert main(["queue", "count", "queue:EMS.OS", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["count"] == 0
    assert main(["queue", "count", "queue:EMS.OS", "-E", "test"]) == 1
    assert "there is no environment 'test'; there are dev, prod" in capsys.readouterr().err


def test_doctor_says_where_values_come_from(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(FILE)
    main(["doctor", "--json"])
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    told = checks["configuration"]["detail"]
    assert f"url from {path}, environment dev" in told
    assert told.count(str(path)) == 1
    assert checks["broker"]["status"] == "ok"
    write("password = 'x'")
    assert main(["doctor"]) == 1
    assert "a password has no place here" in capsys.readouterr().out


def test_the_page_shows_what_is_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")
    (tmp_path / "mtosi-jms.toml").write_text(page.split("```toml\n")[1].split("```")[0], encoding="utf-8")
    assert [provider(environment=name).url is None for name in ("dev", "test", "prod")] == [False] * 3
    monkeypatch.setenv(CONFIG, "kept")  # the block sets it: this takes it back
    exec(page.split("```python\n")[1].split("```")[0], {})
    assert capsys.readouterr().out == "mtosi-jms memory\n"
