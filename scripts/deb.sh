#!/bin/sh
# Makes a Debian package from a folder with both programs, and with their libraries if they are not within them: scripts/deb.sh
# FOLDER [FOLDER OF THE PACKAGE [DEBIAN'S NAME OF THE MACHINE, A PROGRAM THAT RUNS HERE]]. Prints the package's path.
# DEB_PACK: the compression options of dpkg-deb; by default -Zxz.
set -eu
built=$1
out=${2:-target/debian}
program=$built/coldframe
if [ ! -f "$program" ]; then
    echo "deb: $program is missing; build it with \`make dist\`" >&2
    exit 1
fi
if ! command -v dpkg-deb >/dev/null; then
    echo "deb: dpkg-deb is missing; on Debian: apt-get install dpkg" >&2
    exit 1
fi
machine=${3:-$(dpkg --print-architecture)}
speaks=${4:-$program}
version=$("$speaks" -V | cut -d ' ' -f 2)
maintainer="The coldframe developers <maintainers@coldframe.invalid>"
mkdir -p "$out"
root=$(mktemp -d "$out/root.XXXXXX")
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
put() { # MODE FILE PLACE
    mkdir -p "$root/$(dirname "$3")"
    cp "$2" "$root/$3"
    chmod "$1" "$root/$3"
}
put 755 "$program" usr/bin/coldframe
put 755 "$built/coldframe-lab" usr/bin/coldframe-lab
for library in libcoldframe_preload.so libcoldframe_plugin.so; do
    if [ -f "$built/$library" ]; then put 644 "$built/$library" "usr/lib/coldframe/$library"; fi
done
mkdir -p "$root/usr/share/man/man1"
for name in coldframe coldframe-lab; do
    "$(dirname "$speaks")/$name" man --dir "$root/usr/share/man/man1"
done
gzip -9 -n "$root"/usr/share/man/man1/*
completions() { # PROGRAM SHELL PLACE
    mkdir -p "$root/$(dirname "$3")"
    "$(dirname "$speaks")/$1" completions "$2" >"$root/$3"
    chmod 644 "$root/$3"
}
for name in coldframe coldframe-lab; do
    completions $name bash usr/share/bash-completion/completions/$name
    completions $name zsh usr/share/zsh/vendor-completions/_$name
    completions $name fish usr/share/fish/vendor_completions.d/$name.fish
done
# README, and each file that it names, where its links look for them.
doc=usr/share/doc/coldframe
for file in README.md CONTRIBUTING.md SECURITY.md data/sheet-template.toml data/traces/shop.c docs/book/src/*.md docs/book/src/*/*.md; do
    put 644 "$file" "$doc/$file"
done
put 644 data/systemd/coldframe-hold@.service usr/lib/systemd/system/coldframe-hold@.service
# What others wrote that is within the programs; `scripts/notices.py` writes it.
if [ -f "$built/THIRD-PARTY.txt" ]; then gzip -9 -n -c "$built/THIRD-PARTY.txt" >"$root/usr/share/doc/coldframe/THIRD-PARTY.txt.gz"; fi
gzip -9 -n -c CHANGELOG.md >"$root/$doc/NEWS.gz"
{
    echo "coldframe ($version) unstable; urgency=medium"
    echo
    echo "  * NEWS.gz says what has changed."
    echo
    echo " -- $maintainer  $(LC_ALL=C date -u -R -d "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}")"
} | gzip -9 -n >"$root/$doc/changelog.gz"
mkdir -p "$root/usr/share/lintian/overrides"
# A static program that any address takes asks for no library.
for name in coldframe coldframe-lab; do
    echo "coldframe: shared-library-lacks-prerequisites [usr/bin/$name]"
done >"$root/usr/share/lintian/overrides/coldframe"
# A guard is wanted by the service that it holds.
echo "coldframe: systemd-service-file-refers-to-unusual-wantedby-target *" >>"$root/usr/share/lintian/overrides/coldframe"
{
    echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
    echo "Upstream-Name: coldframe"
    echo
    echo "Files: *"
    echo "Copyright: The coldframe developers"
    echo "License: Apache-2.0"
    echo " On Debian systems the text of the licence is in /usr/share/common-licenses/Apache-2.0."
    echo
    echo "Comment: Crates that are linked into the programs, with their licences: THIRD-PARTY.txt.gz"
    echo
    echo "Files: uPlot, within usr/bin/coldframe"
    sed -n 's/^Copyright (c) /Copyright: /p' crates/product/show/src/html/uplot/LICENSE
    echo "License: Expat"
    sed -n '/^Permission/,$ s/^$/./; /^Permission/,$ s/^/ /p' crates/product/show/src/html/uplot/LICENSE
} >"$root/usr/share/doc/coldframe/copyright"
find "$root/usr/share/doc" "$root/usr/share/lintian" "$root/usr/share/man" -type f -exec chmod 644 {} +
# The oldest C library that has all symbols the files need.
libc=$(for file in "$root"/usr/bin/* "$root"/usr/lib/coldframe/*.so; do
    [ -f "$file" ] || continue
    objdump -T "$file" 2>/dev/null | grep -o 'GLIBC_[0-9.]*' || true
done | sed 's/GLIBC_//' | sort -V | tail -1)
mkdir -p "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<CONTROL
Package: coldframe
Version: $version
Architecture: $machine
Maintainer: $maintainer
Installed-Size: $(du -sk "$root/usr" | cut -f 1)
${libc:+Depends: libc6 (>= $libc), libgcc-s1
}Suggests: qemu-user, zram-tools | systemd-zram-generator
Homepage: $(sed -n 's/^homepage = "\(.*\)"/\1/p' Cargo.toml)
Section: utils
Priority: optional
Description: how little RAM a program can live with, and what that costs
 Records which memory a program touches, says how long it takes by RAM, and
 runs it unmodified in the RAM that it is given. coldframe-lab simulates page
 replacement, fault handlers and swap areas on flash for boards.
CONTROL
# The group and the rule for /dev/userfaultfd; not into another root, whose device this is not.
cat >"$root/DEBIAN/postinst" <<'POSTINST'
#!/bin/sh
set -e
if [ "$1" = configure ] && [ -z "${DPKG_ROOT:-}" ] && [ -e /dev/userfaultfd ]; then
    env -u SUDO_USER coldframe doctor --setup || echo "coldframe: \`sudo coldframe doctor --setup\` gives users the right to page" >&2
fi
POSTINST
cat >"$root/DEBIAN/prerm" <<'PRERM'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -z "${DPKG_ROOT:-}" ]; then
    coldframe doctor --setup --undo || true
fi
PRERM
chmod 755 "$root/DEBIAN/postinst" "$root/DEBIAN/prerm"
(cd "$root" && find usr -type f | LC_ALL=C sort | xargs md5sum >DEBIAN/md5sums)
find "$root" -type d -exec chmod 755 {} +
package=$out/coldframe_${version}_$machine.deb
# shellcheck disable=SC2086 # options
dpkg-deb ${DEB_PACK:--Zxz} --root-owner-group --build "$root" "$package" >&2
echo "$package"
