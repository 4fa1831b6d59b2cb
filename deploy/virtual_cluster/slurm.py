"""The configuration files of a virtual cluster. Pure: a layout in, texts out."""

import os
import pathlib
import re

# One a line, as an administrator would write them; what differs from Slurm's defaults says why.
COMMON = """\
ClusterName={name}
SlurmctldHost={control}
AuthType=auth/munge
SlurmUser=slurm
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurmctld.log
SlurmdLogFile=/var/log/slurmd.log
ProctrackType=proctrack/{proctrack}
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
# Nodes may have more cores here than the machine below them.
SlurmdParameters=config_overrides
# Het jobs start by backfill alone.
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_min_interval=100000,bf_continue
ReturnToService=2
MpiDefault=none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=5
KillWait=5
MinJobAge=300
GresTypes=gpu
"""

ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={control}
AccountingStorageEnforce=associations,limits,qos
"""

DBD = """\
AuthType=auth/munge
DbdHost={control}
SlurmUser=slurm
LogFile=/var/log/slurmdbd.log
PidFile=/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
"""


def machine_mib():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20


def key(line):
    return line.partition("=")[0].strip().lower()


def submission_lines(site, job_submit, directory):
    """Of slurm.conf: `site` is the text of msa_job_submit.conf, which names the licences; `directory` holds job_submit_msa.so."""
    own = [str(path) for path in pathlib.Path("/usr/lib").glob("*/slurm-wlm")]
    licences = re.findall(r"(?m)^#\s+(Licenses=\S+)$", site)
    return [f"PluginDir={':'.join(own + [directory])}", f"JobSubmitPlugins={job_submit}", "BurstBufferType=burst_buffer/lua", *licences]


def slurm_conf(layout, *, name, control, accounting, proctrack, extra, submission):
    lines = COMMON.format(name=name, control=control, proctrack=proctrack).splitlines(keepends=True)
    lines += (ACCOUNTING.format(control=control) if accounting else "AccountingStorageType=accounting_storage/none\n").splitlines(keepends=True)
    lines += [line + "\n" for line in submission]
    replaced = {key(line) for line in extra}
    lines = [line for line in lines if key(line) not in replaced]
    partitions = {}
    for host in layout.hosts:
        if not host.computes and host.kind != "gateway":
            continue
        partitions.setdefault(host.module, []).append(host.name)
        memory = host.memory_mib or machine_mib()
        gres = f" Gres=gpu:{host.gpus}" if host.gpus else ""
        lines.append(
            f"NodeName={host.name} CPUs={host.cores} CoresPerSocket={host.cores} RealMemory={memory} "
            f"Features={host.module},{host.kind}{gres} State=UNKNOWN\n"
        )
    default = next(host.module for host in layout.hosts if host.computes)
    for module, nodes in partitions.items():
        flag = " Default=YES" if module == default else ""
        lines.append(f"PartitionName={module} Nodes={','.join(nodes)} MaxTime=INFINITE State=UP{flag}\n")
    lines += [line.rstrip("\n") + "\n" for line in extra]
    return "".join(lines)


def gres_conf(layout):
    return "".join(f"NodeName={h.name} Name=gpu Count={h.gpus}\n" for h in layout.hosts if h.gpus)


def slurmdbd_conf(control):
    return DBD.format(control=control)


def hosts_file(layout, host):
    lines = ["127.0.0.1 localhost\n"]
    lines += [f"{layout.address(other, host)} {other.name}\n" for other in layout.hosts]
    return "".join(lines)
