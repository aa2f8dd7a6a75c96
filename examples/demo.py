"""The main job, shown: three device bugs met on simulated CUDA and explained, then the mended scripts running clean.

Each script runs as a user would run it: `samedevice run --simulate cuda SCRIPT`.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BUGS = ["classic", "plain_attribute", "resumed_optimizer"]


def run(script: str) -> int:
    command = ["run", "--simulate", "cuda", script]
    print(f"\n$ samedevice {' '.join(command)}", flush=True)
    return subprocess.run([sys.executable, "-m", "samedevice", *command], cwd=HERE, check=False).returncode


def main() -> int:
    found = [run(f"{bug}.py") == 1 for bug in BUGS]
    clean = [run(f"{bug}_mended.py") == 0 for bug in BUGS]
    print(
        f"\n{sum(found)} of {len(BUGS)} bugs found, {sum(clean)} of {len(BUGS)} mended scripts ran clean, no GPU used."
    )
    return 0 if all(found) and all(clean) else 1


if __name__ == "__main__":
    sys.exit(main())
