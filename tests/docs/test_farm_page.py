"""The page on farms: its job array joins a farm, its manifest says what our commands take."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "farm.md").read_text()
OWN = ("ca.pem", "worker.pem", "worker-key.pem")
SBATCH = """#!/bin/bash
for task in 1 2; do SLURM_ARRAY_TASK_ID=$task SLURM_CPUS_PER_TASK=1 bash "$1" & done
"""


def blocks(language: str) -> list[str]:
    """The page's blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def farm(tmp_path):
    """A farm's address; its scheduler's folder is ``farm``."""
    command = [sys.executable, "-m", "vdla", "farm", "up", "--port", "0", "--folder",
               str(tmp_path / "farm"), "--json"]  # fmt: skip
    scheduler = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    yield json.loads(scheduler.stdout.readline())["address"]
    scheduler.kill()
    scheduler.wait()


@pytest.mark.long
def test_a_job_array_joins_with_its_certificates(tmp_path, farm, vdla):
    """With a stand-in for sbatch; the workers have no other key than their own."""
    (script,) = (block for block in blocks("sh") if "#SBATCH" in block)
    home, programs = tmp_path / "home", tmp_path / "programs"
    for folder in (home / "farm", programs):
        folder.mkdir(parents=True)
    for name in OWN:
        shutil.copy2(tmp_path / "farm" / name, home / "farm")
    for name, text in (
        ("sbatch", SBATCH),
        ("vdla", f'#!/bin/bash\nexec {sys.executable} -m vdla "$@"\n'),
    ):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (home / "worker.sh").write_text(script.replace("tls://login1:8786", farm))
    environment = {**os.environ, "HOME": str(home), "PATH": f"{programs}:{os.environ['PATH']}"}
    array = subprocess.Popen(["sbatch", "worker.sh"], cwd=home, env=environment)
    access = ("--folder", tmp_path / "farm")
    for _ in range(60):
        workers = vdla("farm", "status", farm, *access, "--json").json["workers"]
        if len(workers) == 2:
            break
        time.sleep(1)
    assert [each["processes"] for each in workers] == [1, 1]
    assert vdla("farm", "down", farm, *access).code == 0
    assert array.wait(30) == 0


def test_the_manifest_has_our_commands(vdla):
    (text,) = blocks("yaml")
    service, *deployments = yaml.safe_load_all(text)
    assert service["spec"]["selector"] == {"app": deployments[0]["metadata"]["name"]}
    for deployment in deployments:
        pod = deployment["spec"]["template"]
        assert pod["metadata"]["labels"] == deployment["spec"]["selector"]["matchLabels"]
        (container,) = pod["spec"]["containers"]
        (mount,), (volume,) = container["volumeMounts"], pod["spec"]["volumes"]
        assert mount["name"] == volume["name"]
        assert volume["secret"]["defaultMode"] == 0o400
        words = container["args"]
        command = [word for word in words[:2] if word in ("farm", "up", "worker")]
        help_text = vdla(*command, "--help").out
        assert all(word in help_text for word in words if word.startswith("--"))
        assert words[words.index("--folder") + 1] == mount["mountPath"]


def test_a_worker_needs_its_own_files_alone():
    (script,) = (block for block in blocks("sh") if "kubectl create secret" in block)
    (line,) = (line for line in script.splitlines() if "vdla-worker" in line)
    assert re.findall(r"--from-file=farm/(\S+)", line) == list(OWN)
