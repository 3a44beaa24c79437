"""Which command installs an optional part, by where vdla itself came from."""

import pytest

from vdla.support.install import pip_install, pip_install_from


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'vdla[rtl]'"),
        ('{"url": "file:///home/me/my%20vdla", "dir_info": {"editable": true}}',
         "pip install -e '/home/me/my vdla[rtl]'"),
        ('{"url": "file:///home/me/vdla", "dir_info": {}}', "pip install '/home/me/vdla[rtl]'"),
        ('{"url": "file:///tmp/vdla-0.1.0-py3-none-any.whl", "archive_info": {}}',
         "pip install 'vdla[rtl] @ file:///tmp/vdla-0.1.0-py3-none-any.whl'"),
    ],
)  # fmt: skip
def test_the_command(origin, command):
    assert pip_install_from(origin, "rtl") == command


def test_this_installation():
    assert pip_install("gpu").startswith("pip install ")
    assert "[gpu]" in pip_install("gpu")
