#!/bin/sh
# What the tests of host code for ARM take: linkers and qemu-user for this system, and Debian's
# Python and NumPy for ARM in a folder: install.sh FOLDER. What is there already is left alone.
set -eu
folder=$(realpath -m "$1")

for tool in qemu-arm qemu-aarch64 arm-linux-gnueabihf-ld aarch64-linux-gnu-ld; do
  command -v "$tool" && continue
  apt-get -qq update
  apt-get -qq --yes --no-install-recommends install qemu-user \
    binutils-arm-linux-gnueabihf binutils-aarch64-linux-gnu
  break
done

# apt for another processor, in a folder of its own: the system's packages and lists stay as they are.
get() {
  apt-get -qq -o APT::Architecture="$arch" -o APT::Architectures="$arch" \
    -o APT::Install-Recommends=false -o APT::Sandbox::User=root -o Acquire::Languages=none \
    -o Debug::NoLocking=true -o Dir::State="$apt" -o Dir::State::status="$apt/status" \
    -o Dir::Cache="$apt" -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=- "$@"
}

for arch in armhf arm64; do
  system=$folder/$arch apt=$folder/$arch.apt
  if [ -e "$system/ready" ]; then continue; fi
  key=/usr/share/keyrings/debian-archive-keyring.gpg
  for release in trixie bookworm; do  # mirrors may hold one of them for this system alone
    rm -rf "$system" "$apt"
    mkdir -p "$system/usr/lib" "$apt/lists/partial" "$apt/archives/partial"
    touch "$apt/status"
    echo "deb [signed-by=$key] http://deb.debian.org/debian $release main" > "$apt/sources.list"
    if get update; then break; fi
  done
  get --yes --download-only install python3-numpy
  for package in "$apt"/archives/*.deb; do dpkg-deb --extract "$package" "$system"; done
  rm -r "$apt"
  # What other packages and their scripts would do: /lib, and a choice of BLAS.
  ln -s usr/lib "$system/lib"
  for library in blas/libblas.so.3 lapack/liblapack.so.3; do
    ln -s "$library" "$system"/usr/lib/*-linux-gnu*/
  done
  touch "$system/ready"
done
