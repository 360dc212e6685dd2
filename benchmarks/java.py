"""The roles of an exchange in Java with the broker's own client: `Peer.java`, compiled when it is needed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from measure import SkippedError

from mtosi_jms.errors import ConfigError
from mtosi_jms.jars import find_client

SOURCE = Path(__file__).resolve().with_name("Peer.java")


def compiled(kind: str, folder: Path) -> str:
    """Compile the program for a kind of broker into a folder, and return its class path.

    Raises:
        SkippedError: there is no JDK, or no client of the broker.
    """
    if shutil.which("javac") is None:
        raise SkippedError("no javac: the lines of Java need a JDK")
    try:
        jars = os.pathsep.join(str(path) for path in find_client(kind))
    except ConfigError as error:
        raise SkippedError(str(error)) from error
    out = folder / "java"
    command = ["javac", "-encoding", "UTF-8", "-proc:none", "-cp", jars, "-d", str(out), str(SOURCE)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SkippedError(f"javac: {done.stderr.strip()}")
    return f"{out}{os.pathsep}{jars}"


def command(plan: dict[str, Any], scenario: str, *, answers: bool) -> list[str]:
    """The command of a role.

    Args:
        plan: of the exchange; see `brokered.Plan`.
        scenario: `request`, `batches` or `stream`.
        answers: whether it is the role that answers.
    """
    facts = {
        "scenario": scenario,
        "factory": plan["jndi_factory"],
        "url": plan["jndi_url"],
        "user": plan["user"],
        "password": plan["password"],
        "queue": plan["queue_name"],
        "replies": plan["replies_name"],
    }
    messages = {"request": [plan.get("request")], "answer": plan["answers"], "message": [plan.get("message")]}
    for kind, some in messages.items():
        for number, message in enumerate(one for one in some if one):
            facts[f"{kind}.{number}"] = message["body"]
            facts |= {f"{kind}.{number}.{name}": str(value) for name, value in message["properties"].items()}
    file = Path(plan["folder"]) / f"{'answers' if answers else 'asks'}.properties"
    # A JSON string without its quotation marks is also a valid value in a properties file.
    lines = (f"{name}={json.dumps(value)[1:-1]}" for name, value in facts.items())
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return ["java", "-cp", plan["java"], "Peer", str(file), "answers" if answers else "asks"]
