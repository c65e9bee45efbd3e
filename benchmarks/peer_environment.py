"""An environment of its own for each peer: what it needs must not bend what we run with."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

PEERS = Path("work/peers")


def peer_python(name: str, requirements: tuple[str, ...], folder: Path = PEERS) -> Path:
    """The Python of a peer's virtual environment, made at the first call (with pip, which needs an index).

    Raises:
        subprocess.CalledProcessError: if it cannot be installed.
    """
    mark = hashlib.sha256("\n".join(requirements).encode()).hexdigest()[:8]
    home = (folder / f"{name}-{mark}").absolute()
    python = home / "bin" / "python"
    if not (home / "installed").exists():
        print(f"installing {', '.join(requirements)} into {home} …", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], check=True)
        (home / "installed").touch()
    return python
