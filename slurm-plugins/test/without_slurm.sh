#!/usr/bin/env bash
# without_slurm.sh CMAKE ROOT: what CMake says where Slurm's files are missing names their package, and a build installs that.
set -euo pipefail
cmake=$1 root=$2
if said=$("$cmake" -DCMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH=OFF -P "$root/deploy/cmake/MsaSlurm.cmake" 2>&1); then
  echo "it is content without Slurm's files" >&2
  exit 1
fi
# CMake folds long texts.
package=$(tr -s ' \n' ' ' <<<"$said" | sed -n 's/.*apt-get install \([a-z-]*\)).*/\1/p')
[ -n "$package" ] || {
  printf 'no package is named in: %s\n' "$said" >&2
  exit 1
}
. "$root/deploy/packages.sh"
[[ " ${build_packages[*]} " = *" $package "* ]] || {
  echo "'$package' is none of build_packages in deploy/packages.sh" >&2
  exit 1
}
