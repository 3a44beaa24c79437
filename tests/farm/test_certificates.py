"""A farm's certificates: made once, checked always, and each fault in one line."""

from __future__ import annotations

import shutil
import ssl
import stat

import pytest

from vdla.farm import certificates
from vdla.farm.certificates import complete, credentials, default_folder
from vdla.farm.work import FarmError


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("farm") / "new"
    complete(folder)
    return folder


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "farm")


def fault(folder, role="worker"):
    with pytest.raises(FarmError) as caught:
        credentials(folder, role)
    return str(caught.value)


def test_keys_are_for_their_owner_alone(made):
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in made.iterdir()}
    roles = ("ca", "scheduler", "worker", "client")
    assert modes == {f"{role}.pem": 0o644 for role in roles} | {
        f"{role}-key.pem": 0o600 for role in roles
    }


@pytest.mark.parametrize("role", ["scheduler", "worker", "client"])
def test_each_role_has_credentials(made, role):
    proof = credentials(made, role)
    assert proof.certificate == made / f"{role}.pem"
    context = ssl.create_default_context(cafile=str(proof.authority))
    context.load_cert_chain(proof.certificate, proof.key)


def test_what_is_there_stays_and_what_is_missing_is_made(folder):
    (folder / "client.pem").unlink()
    before = (folder / "worker.pem").read_bytes(), (folder / "ca.pem").read_bytes()
    complete(folder)
    assert ((folder / "worker.pem").read_bytes(), (folder / "ca.pem").read_bytes()) == before
    assert credentials(folder, "client").farm == credentials(folder, "worker").farm


def test_without_the_authoritys_key_nothing_is_made(folder):
    (folder / "client.pem").unlink()
    (folder / "ca-key.pem").unlink()
    with pytest.raises(FarmError) as caught:
        complete(folder)
    assert str(caught.value) == (
        f"{folder}/ca-key.pem: expected the key of the farm's authority, to make client.pem with, "
        "found none; start the farm where it was made, or in an empty folder"
    )


def test_a_machine_needs_three_files(folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    for name in ("ca.pem", "worker.pem", "worker-key.pem"):
        shutil.copy2(folder / name, other)
    assert credentials(other, "worker").farm == credentials(folder, "worker").farm


def test_a_file_is_missing(folder):
    (folder / "worker.pem").unlink()
    assert fault(folder) == (
        f"{folder}/worker.pem: expected a file of the farm's, found none; `vdla farm up` makes it, "
        "and says which files to copy to other machines"
    )


@pytest.mark.parametrize("content", [b"", b"\0\xff", b"-----BEGIN CERTIFICATE-----\nno\n"])
def test_a_file_is_no_certificate(folder, content):
    (folder / "worker.pem").write_bytes(content)
    expected = f"{folder}/worker.pem: expected a certificate in PEM, found none in it"
    assert fault(folder) == expected


def test_a_file_is_no_key(folder):
    (folder / "worker-key.pem").write_bytes((folder / "ca.pem").read_bytes())
    assert fault(folder) == f"{folder}/worker-key.pem: expected a key in PEM, found none in it"


def test_a_certificate_has_expired(folder):
    certificates._write_pair(folder, "worker", -2)
    text = fault(folder)
    assert text.startswith(
        f"{folder}/worker.pem: expected a valid certificate, found one that expired on 20"
    )
    assert text.endswith("; remove it, and `vdla farm up` makes a new one")
    (folder / "worker.pem").unlink()
    complete(folder)
    credentials(folder, "worker")


def test_a_certificate_is_another_farms(folder, tmp_path):
    complete(tmp_path / "other")
    for name in ("worker.pem", "worker-key.pem"):
        shutil.copy2(tmp_path / "other" / name, folder)
    ours, theirs = (credentials(f, "client").farm for f in (folder, tmp_path / "other"))
    assert fault(folder) == (
        f"{folder}/worker.pem: expected a certificate of the {ours}, found one of the {theirs}"
    )


def test_a_certificate_is_signed_by_an_impostor(folder, tmp_path, monkeypatch):
    name = credentials(folder, "client").farm.removeprefix("farm ")
    monkeypatch.setattr(certificates.secrets, "token_hex", lambda size: name)
    impostor = tmp_path / "impostor"
    impostor.mkdir()
    complete(impostor)
    for file in ("worker.pem", "worker-key.pem"):
        shutil.copy2(impostor / file, folder)
    assert fault(folder) == (
        f"{folder}/worker.pem: expected a certificate signed by {folder}/ca.pem, found one signed "
        "by another key"
    )


def test_a_key_is_of_another_certificate(folder):
    shutil.copy2(folder / "client-key.pem", folder / "worker-key.pem")
    assert fault(folder) == (
        f"{folder}/worker-key.pem: expected the key of {folder}/worker.pem, found another one"
    )


def test_a_key_that_others_can_read(folder):
    (folder / "worker-key.pem").chmod(0o640)
    assert fault(folder) == (
        f"{folder}/worker-key.pem: expected a key that nobody else can read, found mode 0640; "
        f"run: chmod 600 {folder}/worker-key.pem"
    )


def test_where_a_farm_is_kept(monkeypatch, tmp_path):
    monkeypatch.delenv("VDLA_FARM", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "vdla" / "farm"
    monkeypatch.setenv("VDLA_FARM", str(tmp_path / "mine"))
    assert default_folder() == tmp_path / "mine"
