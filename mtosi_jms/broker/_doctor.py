"""Java, as `mtosi-jms doctor` shows it."""

from __future__ import annotations

import re
import subprocess
from typing import Final

from mtosi_jms.broker import find_java
from mtosi_jms.cli.checks import Check
from mtosi_jms.errors import ConfigError

JAVA_MINIMUM: Final = 17


def check() -> Check:
    fix = f"install a JDK {JAVA_MINIMUM} or later and put it on PATH, or set JAVA_HOME"
    try:
        java = find_java()
    except ConfigError:
        return Check("java", "missing", "not found in JAVA_HOME or on PATH", fix)
    try:
        answer = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check("java", "missing", f"{java} does not run: {error}", fix)
    match = re.search(r'version "(?:1\.)?(\d++)([^"]*)"', answer.stderr + answer.stdout)
    if match is None:
        return Check("java", "missing", f"{java} does not say its version", fix)
    detail = f"{match.group(1)}{match.group(2)} ({java})"
    return Check("java", "ok", detail) if int(match.group(1)) >= JAVA_MINIMUM else Check("java", "missing", detail, fix)
