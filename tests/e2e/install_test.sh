#!/usr/bin/env bash
# install_test.sh BUILD: what `cmake --install` lays down works from there: man pages, documents, and a local system.
set -euo pipefail
build=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/msa-inst.XXXXXX")
export MSA_DIR=$work/system
finish() {
  "$work/usr/bin/msactl" cluster down >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap finish EXIT
fail() {
  echo "install_test: $*" >&2
  exit 1
}

cmake --install "$build" --prefix "$work/usr" >"$work/log" || fail "$(cat "$work/log")"
for script in bash-completion/completions/msactl zsh/site-functions/_msactl fish/vendor_completions.d/msactl.fish; do
  grep -q "completion words --" "$work/usr/share/$script" || fail "$script is not installed"
done
for page in man1/msactl.1 man5/msa-topology.5 man8/msa-controllerd.8 man8/msa-noded.8 man8/msa-jobd.8 man8/msa-namd.8 man8/msa-gatewayd.8 man8/msa-companion.8; do
  [ -s "$work/usr/share/man/$page" ] || fail "$page is not installed"
done
for example in hello_modular.c topology.toml; do
  [ -s "$work/usr/share/doc/msa/deploy/examples/$example" ] || fail "example $example is not installed"
done
doc=$work/usr/share/doc/msa
for link in $(grep -o '](deploy/[^)#]*' "$doc/README.md" | cut -c3- | sort -u); do
  [ -s "$doc/$link" ] || [ -d "$doc/$link" ] || fail "README.md leads to $link, which is not installed"
done

# An empty environment: nothing of the build tree is on the path.
run() { env -i HOME="$work" MSA_DIR="$MSA_DIR" PATH=/usr/bin:/bin "$work/usr/bin/msactl" "$@"; }
run cluster up -q
[ "$(run run -m cluster -N 2 -n 2 -l sh -c 'echo $MSA_NODE' | sort)" = $'0: cn0\n1: cn1' ] || fail "run gave something else"
run cluster down
echo "the installed tree runs a job over two nodes"
