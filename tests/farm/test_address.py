"""A scheduler's address: what is wrong with it, or with who is there, is one line."""

from __future__ import annotations

import socket
import ssl
import threading

import pytest

from vdla.farm import address as module
from vdla.farm.address import Address, probe
from vdla.farm.certificates import complete, credentials
from vdla.farm.work import FarmError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    result = tmp_path_factory.mktemp("farm")
    complete(result)
    return result


def serve(handle):
    """The address of a server that does something with one connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run():
        with listener, listener.accept()[0] as stream:
            try:
                handle(stream)
            except OSError:
                return

    threading.Thread(target=run, daemon=True).start()
    return Address("tls", *listener.getsockname())


def speak_tls(proof, client_authority):
    """A server with a farm's certificate, which wants one of some authority, and then speaks."""

    def handle(stream):
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(client_authority))
        context.load_cert_chain(proof.certificate, proof.key)
        context.verify_mode = ssl.CERT_REQUIRED
        with context.wrap_socket(stream, server_side=True) as encrypted:
            encrypted.sendall(b"hello")
            encrypted.recv(1)

    return serve(handle)


def fault(address, proof):
    with pytest.raises(FarmError) as caught:
        probe(address, proof)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("tls://10.0.0.5:99", Address("tls", "10.0.0.5", 99)),
        ("tls://farm", Address("tls", "farm", 8786)),
        ("tls://[::1]:99", Address("tls", "::1", 99)),
    ],
)
def test_an_address_reads_as_it_is_written(text, address):
    assert Address.read(text) == address
    assert Address.read(str(address)) == address


@pytest.mark.parametrize(
    "text", ["", "farm:8786", "tls://", "tls://a:b", "http://a:1", "tls://a/b"]
)
def test_no_address(text):
    with pytest.raises(FarmError) as caught:
        Address.read(text)
    assert str(caught.value) == f"{text}: expected an address as tls://HOST:8786"


def test_an_unencrypted_farm_is_refused_unless_one_insists():
    with pytest.raises(FarmError) as caught:
        Address.read("tcp://a:1")
    assert str(caught.value) == (
        "tcp://a:1: expected tls://, found tcp://, on which anyone who reaches a machine of the "
        "farm can run code there; --without-encryption insists"
    )
    assert not Address.read("tcp://a:1", without_encryption=True).encrypted
    with pytest.raises(
        FarmError, match=r"^--without-encryption: expected tcp://, found tls://a:1$"
    ):
        Address.read("tls://a:1", without_encryption=True)


def test_the_right_scheduler_is_reached_from_somewhere(folder):
    address = speak_tls(credentials(folder, "scheduler"), folder / "ca.pem")
    assert probe(address, credentials(folder, "client")) == "127.0.0.1"


def test_nobody_is_there(folder):
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = Address("tls", *free.getsockname())
    assert fault(address, credentials(folder, "client")) == (
        f"{address}: expected the scheduler of a farm, found none (Connection refused); "
        "`vdla farm up` starts one"
    )


def test_a_scheduler_of_another_farm(folder, tmp_path):
    complete(tmp_path)
    address = speak_tls(credentials(tmp_path, "scheduler"), folder / "ca.pem")
    proof = credentials(folder, "client")
    assert fault(address, proof) == (
        f"{address}: expected a scheduler of the {proof.farm}, as {proof.authority} says, found "
        "one of another farm"
    )


def test_a_client_is_no_scheduler(folder):
    """Who may have jobs done can't pose as the one that hands them out."""
    address = speak_tls(credentials(folder, "client"), folder / "ca.pem")
    assert "one of another farm" in fault(address, credentials(folder, "worker"))


def test_a_scheduler_that_refuses_us(folder, tmp_path):
    complete(tmp_path)
    address = speak_tls(credentials(folder, "scheduler"), tmp_path / "ca.pem")
    proof = credentials(folder, "client")
    assert fault(address, proof).startswith(
        f"{address}: expected the scheduler to take {proof.certificate}, found it refused"
    )


def test_a_scheduler_that_does_not_encrypt(folder):
    address = serve(lambda stream: stream.sendall(b"hello, I am plain\n" * 9))
    assert fault(address, credentials(folder, "client")) == (
        f"{address}: expected a scheduler that encrypts, found one that doesn't, or no scheduler; "
        "`vdla farm up` starts one"
    )


def test_something_that_says_nothing(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.1)
    end = threading.Event()
    address = serve(lambda stream: end.wait(10))
    text = fault(Address("tcp", address.host, address.port), None)
    end.set()
    assert text == (
        f"tcp://127.0.0.1:{address.port}: expected the scheduler of a farm, found something that "
        "says nothing; is it tls://?"
    )
