"""Puts the native XML core into a wheel, and goes on without it where it cannot be built.

`MTOSI_JMS_BUILD=native` makes that an error, `MTOSI_JMS_BUILD=python` builds none. `CARGO` names another cargo.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = Path(__file__).resolve().parent
MODULE = "mtosi_jms/xmlbind/_core" + (".pyd" if sys.platform == "win32" else ".abi3.so")
CARGO = os.environ.get("CARGO", "cargo")
SLOWER = "mtosi-jms: without the native XML core, XML is read and written at about a fifth of the speed"


class CoreError(Exception):
    """Why the core cannot be built, and what to do."""


class CoreHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds the core for this platform. The wheel then is one for it and for CPython 3.11 and later, else for any."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        wanted = os.environ.get("MTOSI_JMS_BUILD", "")
        if wanted not in ("", "native", "python"):
            self.app.abort(f"MTOSI_JMS_BUILD is native or python, not {wanted!r}")
        inside = Path(self.root, MODULE)
        if version == "editable":
            inside.unlink(missing_ok=True)
        if wanted == "python":
            return
        try:
            library = build()
        except CoreError as error:
            if wanted:
                self.app.abort(f"mtosi-jms: the native XML core cannot be built: {error}")
            self.app.display_warning(f"{SLOWER}: {error}")
            return
        if version == "editable":  # a name of its own first: a process may have the old file mapped
            shutil.copy(library, inside.with_suffix(".new"))
            inside.with_suffix(".new").replace(inside)
        else:
            build_data["force_include"][str(library)] = MODULE
        platform = self.build_config.builder.get_best_matching_tag().rpartition("-")[2]
        build_data.update(pure_python=False, tag=f"cp311-abi3-{platform}")


def build() -> Path:
    """Build the core, and return the library.

    Raises:
        CoreError: it cannot be built.
    """
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise CoreError("this Python has no stable ABI for it")
    needs = f"install Rust {_minimum()} or later with a linker; cargo needs a network, or the crates at hand"
    command = [CARGO, "rustc", "--lib", "--release", "--locked", "--message-format=json-render-diagnostics"]
    try:
        done = subprocess.run(command, check=False, cwd=HERE, capture_output=True, text=True, encoding="utf-8")
    except OSError:
        raise CoreError(f"there is no {CARGO}; {needs}") from None
    if done.returncode != 0:
        sys.stderr.write(done.stderr)
        said = next((line for line in done.stderr.splitlines() if line.startswith("error")), "cargo failed")
        raise CoreError(f"{said}; {needs}")
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    (built,) = (one for one in messages if "cdylib" in one.get("target", {}).get("crate_types", ()))
    return next(path for path in map(Path, built["filenames"]) if path.suffix in (".so", ".dylib", ".dll"))


def _minimum() -> str:
    import tomllib  # not in a Python that is too old, which pip refuses later

    package = tomllib.loads((HERE / "Cargo.toml").read_text(encoding="utf-8"))["package"]
    return str(package["rust-version"])
