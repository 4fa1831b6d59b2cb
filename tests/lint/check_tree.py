#!/usr/bin/env python3
"""The rules of the tree that a machine can check: layers, homes of third-party headers, sizes, style.

check_tree.py ROOT   prints one line per violation, "path:line: rule: what; remedy", and returns 1 if there is any.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

TOP_FOLDERS = {"proto", "daemon", "pmix-server", "slurm-plugins", "nam-emulator", "cli", "tests", "deploy", ".ci"}
TOP_FILES = {"README.md", "LICENSE", "CHANGELOG.md", "CMakeLists.txt", "CMakePresets.json", ".clang-format", ".clang-tidy",
             ".gitignore"}
EXECUTABLE = ("deploy/quickstart", "deploy/test", "deploy/test-bare", "deploy/vcluster", ".ci/run", "tests/bench/run", "tests/bench/nam", "tests/bench/relay")

# Third-party headers and the only places that may include them.
HOMES = [
    (r"grpc(pp|\+\+)?/|google/protobuf/|.*\.pb\.h$", [r"daemon/adapters/grpc/", r".*_service\.(cc|h)$", r"cli/client/", r".*/test/", r"tests/"]),
    (r"absl/", []),
    (r"sqlite3\.h$", [r"daemon/adapters/sqlite/"]),
    (r"pmix[a-z_]*\.h$", [r"pmix-server/"]),
    (r"slurm/|spank\.h$", [r"slurm-plugins/"]),
    (r"munge\.h$", [r"daemon/adapters/munge/"]),
    (r"rdma/", [r"nam-emulator/fabric/"]),
    (r"hwloc(\.h$|/)", [r"daemon/adapters/hwloc/"]),
    (r"mpi\.h$", [r"pmix-server/mpi/", r".*/test/", r"tests/", r"deploy/examples/"]),
    (r"toml\+\+/", [r"daemon/adapters/config/"]),
]

# Who may include whom: the first pattern that fits the including file decides; values are folders of the header.
LAYERS = [
    (r"tests/|.*/test/", None),  # tests reach everything
    (r"daemon/base/", [r"daemon/base/"]),
    (r"daemon/core/", [r"daemon/base/", r"daemon/core/"]),
    (r"daemon/adapters/", [r"daemon/(base|core|adapters)/"]),
    (r"daemon/controller/", [r"daemon/(base|core|adapters|controller)/"]),
    (r"daemon/gateway/", [r"daemon/(base|gateway)/"]),
    (r"daemon/node/", [r"daemon/(base|core|adapters|node)/"]),
    (r"cli/", [r"daemon/(base|core|adapters)/", r"cli/", r"nam-emulator/client/"]),
    (r"pmix-server/mpi/", [r"daemon/base/", r"pmix-server/mpi/", r"nam-emulator/client/"]),
    (r"pmix-server/", [r"daemon/(base|core|adapters)/", r"pmix-server/", r"nam-emulator/client/"]),
    (r"slurm-plugins/", [r"daemon/(base|core)/", r"slurm-plugins/"]),
    (r"nam-emulator/(client|fabric|shm)/", [r"daemon/base/", r"nam-emulator/(client|fabric|shm)/"]),
    (r"nam-emulator/", [r"daemon/(base|core|adapters)/", r"nam-emulator/"]),
]

# daemon/core is pure: time, ids and randomness are arguments, and nothing touches the world.
IMPURE_HEADERS = {"thread", "mutex", "future", "condition_variable", "random", "fstream", "iostream", "filesystem", "cstdlib",
                  "ctime", "unistd.h", "time.h", "stdlib.h", "fcntl.h"}
IMPURE_CALLS = re.compile(r"\b(SteadyNow|Now|getenv|rand|random_device|fopen|system_clock::now|steady_clock::now)\s*\(")

MAX_FILE, MAX_PUBLIC_HEADER, MAX_FUNCTION = 600, 250, 60
# One list of all messages that cross a process's edge is easier to keep free of clashes than several.
LONG_HEADERS = {"daemon/base/include/msa/base/messages.h"}
SOURCE = (".cc", ".h", ".c")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# In pieces, so that this file does not accuse itself.
MARKS = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
# A test may skip itself as an ordinary user, with its reason; deploy/test as root takes a skip for a failure.
SKIPS = re.compile(r"\bDISABLED" r"_|\bGTEST_" r"SKIP\(\)\s*;")
MACHINE_PATHS = re.compile(r"(^|[^A-Za-z0-9_.-])/(wo" r"rk|fa" r"rm)/|/ro" r"ot/|\.py" r"env")
SLEEPS = re.compile(r"\b(sleep|usleep|nanosleep|sleep_for|sleep_until)\s*\(")


def files_of(root):
    """Paths relative to root: what git knows or would add; without git, everything outside build/."""
    try:
        out = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z"], check=True,
                             capture_output=True).stdout.decode()
        return sorted(f for f in set(out.split("\0")) if f and (root / f).is_file())
    except (OSError, subprocess.CalledProcessError):
        found = []
        for folder, folders, names in os.walk(root):
            if Path(folder) == root:
                folders[:] = [f for f in folders if f not in ("build", ".git")]
            found += [str((Path(folder) / n).relative_to(root)) for n in names]
        return sorted(found)


class Tree:
    def __init__(self, root):
        self.root = Path(root)
        self.files = files_of(self.root)
        self.files_set = set(self.files)
        self.violations = []
        self.public = {}  # "msa/base/wire.h" -> "daemon/base/include/msa/base/wire.h"
        for f in self.files:
            at = f.find("include/msa/")
            if at >= 0 and f.endswith(".h"):
                self.public[f[at + len("include/"):]] = f

    def report(self, path, line, rule, text):
        self.violations.append(f"{path}:{line}: {rule}: {text}")

    def check(self):
        self.check_top()
        for f in self.files:
            try:
                text = (self.root / f).read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue  # a fuzzer's corpus
            self.check_text(f, text)
            if f.endswith(SOURCE):
                lines = text.splitlines()
                self.check_sizes(f, lines)
                self.check_includes(f, lines)
                self.check_source(f, lines)
        return self.violations

    def check_top(self):
        for name in sorted({f.split("/")[0] for f in self.files if "/" in f} - TOP_FOLDERS):
            self.report(name, 1, "top-folder", f"folder '{name}' is not one of {', '.join(sorted(TOP_FOLDERS))}")
        for name in sorted({f for f in self.files if "/" not in f} - TOP_FILES):
            self.report(name, 1, "top-file", "a file at the root that is not in the list of tests/lint/check_tree.py")
        for f in EXECUTABLE:
            if f in self.files and not os.access(self.root / f, os.X_OK):
                self.report(f, 1, "run-bit", "is a command without its run bit; chmod +x")

    def check_text(self, f, text):
        if f == "LICENSE":
            return
        for number, line in enumerate(text.splitlines(), 1):
            if MACHINE_PATHS.search(line):
                self.report(f, number, "machine-path", "names a directory of one machine; take it from an option or the environment")
            if f.endswith(SOURCE + (".py", ".sh", ".cmake", ".txt", ".proto", ".md")) and MARKS.search(line):
                self.report(f, number, "unfinished", "an unfinished mark; finish it or file an issue")
            if f.endswith(".cc") and SKIPS.search(line):
                self.report(f, number, "skip", "a disabled test, or one that skips itself without saying why; make it run")
            if re.search(r"_(i?test|prop_test)\.cc$", f) and SLEEPS.search(line):
                self.report(f, number, "sleep", "a test that sleeps; wait for the fact with Eventually()")

    def check_sizes(self, f, lines):
        if len(lines) > MAX_FILE:
            self.report(f, MAX_FILE, "file-length", f"{len(lines)} lines, at most {MAX_FILE}; split it")
        if "/include/" in f and f.endswith(".h") and len(lines) > MAX_PUBLIC_HEADER and f not in LONG_HEADERS:
            self.report(f, MAX_PUBLIC_HEADER, "header-length", f"{len(lines)} lines, a public header has at most {MAX_PUBLIC_HEADER}")
        for begin, end in functions(lines):
            if end - begin + 1 > MAX_FUNCTION:
                self.report(f, begin + 1, "function-length", f"{end - begin + 1} lines, at most {MAX_FUNCTION}; split it")

    def check_includes(self, f, lines):
        allowed = next((folders for pattern, folders in LAYERS if re.match(pattern, f)), None)
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            quote, header = match.groups()
            for pattern, homes in HOMES:
                if re.match(pattern, header) and not any(re.match(h, f) for h in homes):
                    where = " or ".join(homes).replace("\\", "") or "nowhere"
                    self.report(f, number, "header-home", f"<{header}> belongs to {where}")
            if quote == '"' and not header.startswith("msa/") and not self.is_private(f, header):
                self.report(f, number, "include-style", f'"{header}": includes from the project start with "msa/", private ones'
                            " stand beside the file or in its library's src/")
            owner = self.public.get(header) if quote == '"' else None
            if owner and allowed is not None and not any(re.match(a, owner) for a in allowed):
                self.report(f, number, "layer", f'"{header}" lies in {owner.split("/include/")[0]}, which this folder may not include')
            if f.startswith("daemon/core/") and "/test/" not in f and quote == "<":
                if header in IMPURE_HEADERS or header.startswith("sys/"):
                    self.report(f, number, "purity", f"<{header}> in daemon/core; time, ids, randomness and I/O enter as arguments")
                if "/" in header and not header.startswith(("fmt/", "sys/")):
                    self.report(f, number, "purity", f"<{header}> in daemon/core, which uses base and std only")
            if f.startswith("daemon/base/") and "/test/" not in f and "/" in header and quote == "<":
                if not header.startswith(("fmt/", "tl/", "sys/")):
                    self.report(f, number, "purity", f"<{header}> in daemon/base, which uses std, tl::expected and fmt only")

    def is_private(self, f, header):
        """Beside the file or in the src/ of its library (where its tests look); in msactl, which is no library, below cli/."""
        folder = Path(f).parent
        if f.startswith("cli/"):
            return f"cli/{header}" in self.files_set or str(folder / header) in self.files_set
        if f.startswith("tests/"):
            return any(known.endswith("/" + header) for known in self.files)
        return "/" not in header and any(str(d / header) in self.files_set for d in (folder, folder.parent / "src"))

    def check_source(self, f, lines):
        in_test = f.startswith("tests/") or "/test/" in f
        if f.endswith(".h") and "#pragma once" not in lines[:3]:
            self.report(f, 1, "pragma-once", "a header starts with '#pragma once'")
        if not re.fullmatch(r"[a-z0-9_]+\.[a-z0-9]+", os.path.basename(f)):
            self.report(f, 1, "file-name", "source files are snake_case")
        for number, line in enumerate(lines, 1):
            code = re.sub(r'"(\\.|[^"\\])*"', '""', line.split("//")[0])
            if f.startswith("daemon/core/") and not in_test and IMPURE_CALLS.search(code):
                self.report(f, number, "purity", "the core asks the world; hand time, ids and randomness in as arguments")
            if not in_test and re.search(r"\bthrow\b", code):
                self.report(f, number, "throw", "failures are Status or Result<T>, nothing throws")


def functions(lines):
    """(first, last) line index of each body that ends with '}' in column 0 and is no type or namespace."""
    begin = None
    for index, line in enumerate(lines):
        if line == "}" and begin is not None:
            head = lines[begin]
            if not re.match(r"(namespace|class|struct|enum|union|extern|#|inline constexpr|constexpr \w+ k)", head):
                yield begin, index
            begin = None
        elif line and not line[0].isspace() and line[0] not in "#}/":
            # The line that a declaration starts with; template heads and attributes stand on lines before it.
            if begin is None or not lines[index - 1].rstrip().endswith((",", "(", ">")):
                begin = index
        elif line.startswith("}"):
            begin = None


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    tree = Tree(sys.argv[1])
    violations = tree.check()
    for violation in violations:
        print(violation)
    print(f"{len(tree.files)} files, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
