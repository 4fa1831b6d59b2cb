# The Debian 12 packages that msa needs, named once. Sourced by deploy/quickstart, deploy/test and deploy/test-bare.

# To build the daemons and msactl.
build_packages=(
  cmake ninja-build g++ gcc pkg-config
  libgrpc++-dev libgrpc-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libabsl-dev libc-ares-dev libre2-dev
  libssl-dev zlib1g-dev libsystemd-dev
  libpmix-dev libhwloc-dev libsqlite3-dev libfabric-dev libxxhash-dev libmunge-dev libslurm-dev
  libspdlog-dev libfmt-dev libcli11-dev libtomlplusplus-dev libexpected-dev
  scdoc
  libopenmpi-dev
)
# To compile and run Open MPI programs.
openmpi_packages=(openmpi-bin)
# To test: the other compilers, test libraries, MPICH (whose half of libmsampi is built where it is), programs and
# shells that the tests start, and what they call.
test_packages=(
  clang-14 clang-format-14 libclang-rt-14-dev llvm-14 lld-14
  libgtest-dev libgmock-dev librapidcheck-dev
  mpich libmpich-dev gfortran python3 python3-mpi4py hpcc lammps bash fish zsh
  util-linux mount passwd procps lua5.3
  munge slurm-wlm slurmdbd mariadb-server iproute2 iputils-ping sudo
)
# To measure, by hand: tests/bench/relay.
bench_packages=(iperf3)

say() { printf '%s: %s\n' "${0##*/}" "$*"; }
die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# What of the named packages is not installed, one a line.
missing_packages() {
  local package
  for package in "$@"; do
    # The status of any architecture: "install ok installed".
    dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || printf '%s\n' "$package"
  done
}

# Installs what is missing; needs no root when nothing is.
install_packages() {
  local missing=() as_root=()
  command -v dpkg-query >/dev/null || die "dpkg-query not found: this script installs Debian packages; on another system install the \
equivalents of: $*"
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "packages are missing and there is no sudo; as root run: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing ${#missing[@]} packages: ${missing[*]}"
  # A machine's package list may be empty or old: refresh it first. 300 s: another apt may hold the lock (unattended upgrades).
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 update
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
    install --no-install-recommends "${missing[@]}" ||
    die "apt-get could not install: ${missing[*]}; msa is made for Debian 12 (bookworm), see its message above"
}

# configure PRESET [cmake option]...: ccache is used where it is installed.
configure() {
  local preset=$1 launcher=()
  shift
  if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  cmake --preset "$preset" "${launcher[@]}" "$@"
}
