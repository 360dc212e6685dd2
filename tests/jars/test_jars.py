"""Jars without Maven: where they come from, what is told where they cannot be had, and what the cache has then."""

from __future__ import annotations

import base64
import hashlib
import http.server
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest

from mtosi_jms.errors import ConfigError
from mtosi_jms.jars import CLIENTS, _fetch, fetch, fetch_client, find_client, pins

FILES = {"one-1.jar": b"the first", "two-2-linux.jar": b"the second"}
PATHS = {"one-1.jar": "/org/example/one/1/one-1.jar", "two-2-linux.jar": "/org/example/two/2/two-2-linux.jar"}
PINS = {
    "org.example:one:1": hashlib.sha256(FILES["one-1.jar"]).hexdigest(),
    "org.example:two:2:linux": hashlib.sha256(FILES["two-2-linux.jar"]).hexdigest(),
}
SECRET = "s3cret-of-the-mirror"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder with a blank in its name, no `mvn`, and a set of two small jars."""
    folder = tmp_path / "ho me"
    (folder / ".m2").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for name in ("XDG_CACHE_HOME", "MAVEN_REPO_URL", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    known = {**pins(), "set": PINS, "client-qpid": PINS}
    monkeypatch.setattr(_fetch, "pins", lambda: known)
    return folder


class Repository(http.server.ThreadingHTTPServer):
    """A Maven repository; `answers` has for a file what is sent in place of it: a status, or a body."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.asked: list[tuple[str, str]] = []
        self.answers: dict[str, Any] = {}


class Answer(http.server.BaseHTTPRequestHandler):
    """One answer."""

    server: Repository

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers.get("Authorization", "")))
        name = self.path.rpartition("/")[2]
        answer = self.server.answers.get(name, FILES.get(name, 404))
        body = answer if isinstance(answer, bytes) else b""
        self.send_response(answer if isinstance(answer, int) else 302 if isinstance(answer, str) else 200)
        if isinstance(answer, str):
            self.send_header("Location", answer + self.path)
        half = body == b"half"
        self.send_header("Content-Length", str(100 if half else len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def repository() -> Iterator[Repository]:
    with Repository() as served:
        thread = threading.Thread(target=served.serve_forever, args=(0.02,))
        thread.start()
        yield served
        served.shutdown()
        thread.join()


@pytest.fixture
def settings(home: Path) -> Callable[[str], None]:
    def write(text: str) -> None:
        (home / ".m2" / "settings.xml").write_text(
            f'<settings xmlns="http://maven.apache.org/SETTINGS/1.2.0">{text}</settings>'
        )

    return write


def bytes_of(jars: list[Path]) -> dict[str, bytes]:
    return {jar.name: jar.read_bytes() for jar in jars}


def failure(name: str = "set") -> str:
    with pytest.raises(ConfigError) as caught:
        fetch(name, "the broker")
    assert "\n" not in str(caught.value)
    assert SECRET not in str(caught.value)
    return str(caught.value)


def test_a_name_is_one_file_in_all_sets() -> None:
    seen: dict[str, str] = {}
    for jars in pins().values():
        for pin, digest in jars.items():
            assert re.fullmatch(r"[\w.-]+:[\w.-]+:[\w.-]+(:[\w.-]+)?", pin)
            assert re.fullmatch(r"[0-9a-f]{64}", digest)
            assert seen.setdefault(_fetch._file(pin), digest) == digest
    for kind, client in CLIENTS.items():
        assert next(iter(pins()[f"client-{kind}"])).split(":")[2] == client.version
        assert client.licences


def test_fetched_once_and_found_without_a_network(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.setenv("MAVEN_REPO_URL", f"{repository.url}/")
    jars = fetch("set", "the broker")
    assert bytes_of(jars) == FILES
    assert {path for path, _ in repository.asked} == {*PATHS.values()}
    assert {jar.parent for jar in jars} == {home / ".cache" / "mtosi-jms" / "jars"}
    assert sorted(path.name for path in jars[0].parent.iterdir()) == [".lock", *sorted(FILES)]
    monkeypatch.setenv("MAVEN_REPO_URL", "http://127.0.0.1:1")
    assert fetch("set", "the broker") == jars
    assert fetch_client("qpid").paths == find_client("qpid") == jars


def test_a_damaged_file_of_the_cache_comes_again(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAVEN_REPO_URL", repository.url)
    jars = fetch_client("qpid").paths
    jars[1].write_bytes(FILES[jars[1].name][:3])
    with pytest.raises(ConfigError, match="mtosi-jms jvm fetch qpid fetches them"):
        find_client("qpid")
    assert bytes_of(fetch_client("qpid").paths) == FILES
    assert len(repository.asked) == 3


def test_what_maven_has_will_do_unless_it_is_broken(
    repository: Repository, settings: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.setenv("MAVEN_REPO_URL", repository.url)
    settings("<localRepository>${user.home}/own</localRepository>")
    for name, path in PATHS.items():
        kept = home / f"own{path}"
        kept.parent.mkdir(parents=True)
        kept.write_bytes(FILES[name] if name == "one-1.jar" else b"half a j")
    assert bytes_of(fetch("set", "the broker")) == FILES
    assert [path for path, _ in repository.asked] == [PATHS["two-2-linux.jar"]]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (404, "answers 404"),
        (401, "answers 401"),
        (503, "answers 503"),
        (b"another", "gives another file"),
        (b"half", "gives another file, SHA-256 [0-9a-f]{64}, or less than the whole; it is not used"),
    ],
)
@pytest.mark.obligation("SEC27")
def test_all_that_is_missing_is_named_and_nothing_is_kept(
    answer: Any, said: str, repository: Repository, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    address = repository.url.replace("//", f"//user:{SECRET}@")
    monkeypatch.setenv("MAVEN_REPO_URL", address)
    repository.answers = {"one-1.jar": answer, "two-2-linux.jar": answer}
    told = failure()
    assert re.search(rf"the broker cannot be had: one-1.jar, two-2-linux.jar \({repository.url} {said}", told)
    assert "set MAVEN_REPO_URL to a Maven repository that has them, or put them into " in told
    repository.answers = {"one-1.jar": answer}
    assert "one-1.jar" in failure()
    assert "two-2-linux.jar" not in failure()
    assert [path.name for path in (home / ".cache" / "mtosi-jms" / "jars").iterdir()] == [".lock"]


def test_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAVEN_REPO_URL", "http://127.0.0.1:1")
    assert "one-1.jar, two-2-linux.jar (http://127.0.0.1:1 cannot be reached: " in failure()


def test_a_host_that_cannot_be_reached_is_not_asked_for_each_file(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def urlopen(request: Any, **_: Any) -> Any:
        asked.append(request.full_url)
        raise URLError("no route")

    monkeypatch.setattr(_fetch, "urlopen", urlopen)
    assert "(https://repo.maven.apache.org/maven2 cannot be reached: no route); set " in failure("broker-artemis")
    assert sum(url.startswith("https:") for url in asked) <= 4
    assert sum(url.startswith("file:") for url in asked) == len(pins()["broker-artemis"])


@pytest.mark.parametrize("url", ["nonsense", "ftp://host/", "https://", f"http://u:{SECRET}@[::1", "http://host:99999"])
def test_a_url_that_is_none(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAVEN_REPO_URL", url)
    assert failure() == "MAVEN_REPO_URL: the URL of the repository is none of https, http, file"


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    told = failure()
    assert "Not a directory, so the broker cannot be kept in" in told
    assert "set XDG_CACHE_HOME to a folder that can be written" in told


def test_two_at_once_fetch_once(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAVEN_REPO_URL", repository.url)
    found: list[dict[str, bytes]] = []
    threads = [threading.Thread(target=lambda: found.append(bytes_of(fetch("set", "it")))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [FILES] * 4
    assert len(repository.asked) == 2


MIRROR = "<mirrors><mirror><id>m</id><url>{url}</url><mirrorOf>{of}</mirrorOf></mirror></mirrors>"
SERVER = "<servers><server><id>m</id><username>u</username><password>{password}</password></server></servers>"
PROFILE = (
    "<profiles><profile><id>p</id>{active}<repositories><repository><id>central</id><url>{url}</url></repository>"
    "</repositories></profile></profiles>"
)


@pytest.mark.parametrize(
    ("text", "password"),
    [
        (MIRROR.replace("{of}", "central"), None),
        (MIRROR.replace("{of}", "*,!own") + SERVER.format(password=SECRET), SECRET),
        (MIRROR.replace("{of}", "external:*") + SERVER.format(password="${env.HELD}"), SECRET),
        (MIRROR.replace("{of}", "*") + SERVER.format(password="{encrypted}"), None),
        (MIRROR.replace("{of}", "own").replace("{url}", "http://127.0.0.1:1") + PROFILE.replace(
            "{active}", "<activation><activeByDefault>true</activeByDefault></activation>"), None),
        (PROFILE.replace("{active}", "") + "<activeProfiles><activeProfile>p</activeProfile></activeProfiles>", None),
    ],
)  # fmt: skip
def test_the_settings_of_maven(
    text: str,
    password: str | None,
    repository: Repository,
    settings: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HELD", SECRET)
    settings(text.replace("{url}", repository.url))
    assert bytes_of(fetch("set", "the broker")) == FILES
    login = f"Basic {base64.b64encode(f'u:{password}'.encode()).decode()}" if password else ""
    assert {sent for _, sent in repository.asked} == {login}


@pytest.mark.parametrize("text", [MIRROR.format(of="central,!central", url="x"), PROFILE.format(active="", url="x")])
def test_settings_that_do_not_count(
    text: str, settings: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings(text)
    monkeypatch.setattr(_fetch, "_CENTRAL", "http://127.0.0.1:1/central")
    assert "one-1.jar, two-2-linux.jar (http://127.0.0.1:1/central cannot be reached: " in failure()


def test_settings_that_are_broken(settings: Callable[[str], None]) -> None:
    settings(f"<mirrors>{SECRET}")
    assert re.search(r"settings\.xml cannot be read: mismatched tag: line 1, column \d+; mend it", failure())


def test_a_login_is_not_sent_to_another_host(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    with Repository() as other:
        thread = threading.Thread(target=other.serve_forever, args=(0.02,))
        thread.start()
        repository.answers = dict.fromkeys(FILES, other.url)
        monkeypatch.setenv("MAVEN_REPO_URL", repository.url.replace("//", f"//user:{SECRET}@"))
        assert bytes_of(fetch("set", "the broker")) == FILES
        other.shutdown()
        thread.join()
    assert all(login for _, login in repository.asked)
    assert [login for _, login in other.asked] == ["", ""]


class TestMaven:
    """The command `mvn`, where the repository has not all; a script plays it."""

    @pytest.fixture
    def maven(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
        def play(lines: str) -> Path:
            program, asked = tmp_path / "bin" / "mvn", tmp_path / "asked.xml"
            program.parent.mkdir()
            program.write_text(f'#!/bin/sh\nPATH=/usr/bin:/bin\ncp pom.xml "{asked}"\nmkdir jars\n{lines}\n')
            program.chmod(0o755)
            return asked

        return play

    def test_fetches_the_rest(
        self, maven: Callable[[str], Path], repository: Repository, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MAVEN_REPO_URL", repository.url)
        repository.answers = {"two-2-linux.jar": 403}
        asked = maven("printf 'the second' > jars/two-2-linux.jar")
        assert bytes_of(fetch("set", "the broker")) == FILES
        text = asked.read_text()
        assert "<artifactId>two</artifactId><version>2</version><classifier>linux</classifier><exclusions>" in text
        assert "<artifactId>one</artifactId>" not in text

    @pytest.mark.parametrize(
        ("lines", "said"),
        [
            (
                f"echo '[ERROR] no route to https://u:{SECRET}@host/x'; exit 1",
                "; mvn: [ERROR] no route to https://host/x)",
            ),
            ("exit 1", "; mvn: no reason)"),
            ("echo other > jars/two-2-linux.jar", "two-2-linux.jar (http"),
        ],
    )
    def test_what_it_says_is_told(
        self,
        lines: str,
        said: str,
        maven: Callable[[str], Path],
        repository: Repository,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv("MAVEN_REPO_URL", repository.url)
        repository.answers = dict.fromkeys(FILES, 404)
        maven(lines)
        assert said in failure()

    def test_that_brings_nothing_is_told(self, maven: Callable[[str], Path]) -> None:
        maven("exit 0")
        with pytest.raises(ConfigError, match="cannot be had: mvn brought no jar"):
            fetch_client("qpid", "1.14.0", unpinned=True)

    def test_without_it_a_version_without_hashes_cannot_be_had(self) -> None:
        with pytest.raises(ConfigError, match=r"Qpid JMS \(AMQP 1.0\) cannot be had: install Maven"):
            fetch_client("qpid", "1.14.0", unpinned=True)


def test_without_a_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("none")))
    assert failure() == "the user has no home folder: set HOME"
