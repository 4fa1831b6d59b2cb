"""Namespaces of a virtual cluster and the processes that hold them.

One process holds the cluster: the first of a PID namespace in which all others are nested, with a mount and a network namespace
in which all file systems and bridges are. When it dies, whatever the reason, the kernel ends every process of the cluster and
takes every mount, interface and bridge with them. Each host has such a holder too, inside the cluster's. A holder is found by
its arguments, so nothing has to be written down before it exists.
"""

import os
import pathlib
import signal
import subprocess
import time

from .layout import Fault

# The first process of a PID namespace: reaps what is left to it. bash reaps children that it did not start.
HOLDER = 'trap "exit 0" TERM; while :; do sleep 86400 & wait $!; done'


def tag(cluster, host=None):
    return f"msa-vcluster:{cluster}:{host or '-'}"


def holders():
    """(tag, pid) of the first process of each namespace of any virtual cluster."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
            if len(arguments) < 4 or not arguments[3].startswith(b"msa-vcluster:"):
                continue
            for line in (entry / "status").read_text().splitlines():
                if line.startswith("NSpid:") and line.split()[-1] == "1":
                    found.append((arguments[3].decode(), int(entry.name)))
        except (OSError, UnicodeDecodeError):
            continue  # it ended while it was looked at
    return found


def holder(cluster, host=None):
    wanted = tag(cluster, host)
    for name, pid in holders():
        if name == wanted:
            return pid
    return None


def clusters():
    return sorted({name.split(":")[1] for name, _ in holders() if name.endswith(":-")})


def start_holder(cluster, host=None):
    """Starts a holder and gives its pid as this process sees it."""
    command = ["unshare", "--net", "--mount", "--pid", "--ipc", "--fork", "--mount-proc", "--propagation", "private"]
    if host is not None:
        top = holder(cluster)
        if top is None:
            raise Fault(f"virtual cluster '{cluster}' has ended while its hosts were started")
        command = ["nsenter", "-t", str(top), "--pid", "--mount"] + command + ["--uts"]
    command += ["bash", "-c", HOLDER, tag(cluster, host)]
    # Its parents outside the new PID namespace have nothing to do but wait; they end with it.
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        pid = holder(cluster, host)
        if pid is not None:
            process.stderr.close()
            return pid
        if process.poll() is not None:
            raise Fault(f"cannot make namespaces: {process.stderr.read().decode().strip()}; a container wants --privileged")
        time.sleep(0.01)
    raise Fault("namespaces were not there within 60 s")


def enter(pid):
    """The command that runs another one in the namespaces of a holder."""
    return ["nsenter", "-t", str(pid), "--mount", "--uts", "--ipc", "--net", "--pid"]


def run(pid, script, *, what):
    """Runs a bash script in the namespaces of a holder. Fault: its last words."""
    done = subprocess.run(
        enter(pid) + ["bash", "-euo", "pipefail", "-c", script],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )
    if done.returncode != 0:
        raise Fault(f"{what} failed: {done.stdout.strip()[-2000:]}")
    return done.stdout


def in_network_of(pid, script, *, what):
    """The same in the network namespace alone: pids are this process's."""
    done = subprocess.run(
        ["nsenter", "-t", str(pid), "--net", "bash", "-euo", "pipefail", "-c", script],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )
    if done.returncode != 0:
        raise Fault(f"{what} failed: {done.stdout.strip()[-2000:]}")


def end(cluster, host=None):
    """Ends all processes of a cluster or of one host and waits until they are gone."""
    pid = holder(cluster, host)
    if pid is None:
        return False
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if holder(cluster, host) is None and (host or not any(n.split(":")[1] == cluster for n, _ in holders())):
            return True
        time.sleep(0.02)
    raise Fault(f"processes of virtual cluster '{cluster}' do not end: a process in an uninterruptible wait?")
