"""What makes a namespace a host: its own file systems, name and daemons."""

import pathlib
import shlex

from . import network

# Private to each host. /run holds the cluster's own files, which stay visible.
PRIVATE = [("/tmp", "1777"), ("/dev/shm", "1777"), ("/run", "0755"), ("/var/spool", "0755"), ("/var/lib/munge", "0700")]


def mount_point(path, shared):
    """Below which a host sees the path as this machine does: "/", or in a private directory the first that is shared."""
    if not any(pathlib.Path(path).is_relative_to(private) for private, _ in PRIVATE):
        return "/"
    return min((directory for directory in shared if pathlib.Path(path).is_relative_to(directory)), key=len)


def file_systems_script(*, state, host, shared):
    """Mounts. `shared`: directories that every host sees as this machine does, also below a private one."""
    lines = []
    saved = [state] + list(shared)
    for i, path in enumerate(saved):
        lines.append(f"exec {10 + i}<{shlex.quote(path)}")
    for path, mode in PRIVATE:
        lines.append(f"[ ! -d {path} ] || mount -t tmpfs -o mode={mode},size=2G vcluster {path}")
    for i, path in enumerate(saved):
        quoted = shlex.quote(path)
        lines.append(f"[ {quoted} -ef /proc/self/fd/{10 + i} ] || {{ mkdir -p {quoted}; mount -c --rbind /proc/self/fd/{10 + i} {quoted}; }}")
    etc = shlex.quote(f"{state}/etc")
    lines += [
        f"mount --bind {etc}/slurm /etc/slurm",
        f"mount --bind {etc}/munge /etc/munge",
        f"mount --bind {etc}/hosts.{host} /etc/hosts",
        f"mount --bind {shlex.quote(state)}/log/{host} /var/log",
        "mkdir -p /run/lock /run/munge /var/log/munge /var/spool/slurmctld /var/spool/slurmd",
        "chown munge:munge /run/munge /var/log/munge /var/lib/munge; chmod 0755 /run/munge; chmod 0700 /var/log/munge",
        "chown slurm:slurm /var/spool/slurmctld",
        f"hostname {host}",
    ]
    return "\n".join(lines)



def sudoers(programs):
    """What lets burst_buffer.lua run msactl as a job's user where SlurmUser is not root."""
    return (
        f'Defaults:slurm secure_path="{programs}:/usr/sbin:/usr/bin:/sbin:/bin"\n'
        f"slurm ALL=(ALL,!root) NOPASSWD: {programs}/msactl region *\n"
    )


def slurmctld_script(state, options):
    """With msactl in its PATH, for burst_buffer.lua."""
    if not options["submission"]:
        return "slurmctld"
    return f"mount --bind {shlex.quote(state)}/etc/sudoers.d /etc/sudoers.d\nPATH={shlex.quote(options['bin'])}:$PATH slurmctld"


MUNGED = "setpriv --reuid=munge --regid=munge --clear-groups munged --num-threads=2"

DATABASE = """\
mkdir -p /run/mysqld /var/spool/mysql && chown mysql:mysql /run/mysqld /var/spool/mysql
mariadb-install-db --user=mysql --datadir=/var/spool/mysql --skip-test-db --auth-root-authentication-method=socket >/var/log/mysql-install.log 2>&1
setsid mariadbd --user=mysql --datadir=/var/spool/mysql --socket=/run/mysqld/mysqld.sock --skip-networking \\
  --innodb-buffer-pool-size=64M --innodb-log-file-size=16M --innodb-lock-wait-timeout=900 </dev/null >/var/log/mariadbd.log 2>&1 &
for i in $(seq 2400); do mariadb-admin ping >/dev/null 2>&1 && break; sleep 0.05; done
mariadb -e "create user slurm@localhost identified by 'slurm'; grant all on slurm_acct_db.* to slurm@localhost"
slurmdbd
for i in $(seq 2400); do sacctmgr -n list cluster >/dev/null 2>&1 && break; sleep 0.05; done
sacctmgr -i add cluster {name} >/dev/null
sacctmgr -i add account vcluster description=vcluster organization=vcluster >/dev/null
sacctmgr -i add user root account=vcluster >/dev/null
"""


def database_script(name):
    """slurmdbd on a MariaDB of its own, with one account that root may use."""
    return DATABASE.replace("{name}", name)


# A daemon that ends is started again, as systemd would.
KEEP = 'while :; do "$@"; echo "$0 ended with status $?; it starts again"; sleep 0.2; done'
TLS_PORT = 7701
MSA_DIR = "/run/msa"


def keep(name, command):
    return (
        f"setsid bash -c {shlex.quote(KEEP)} {shlex.join([name, *command])} </dev/null >>/var/log/{name}.log 2>&1 &"
    )


def msa_script(host, control, options):
    """msa's daemons of a host, and the file by which its users find the controller."""
    common = ["--dir", MSA_DIR, "--topology", f"{options['state']}/topology.toml"]
    server = f"tls:{control}:{TLS_PORT}"
    client = f"server = {server}\nbackend = {options['scheduler']}\n"
    lines = [f"mkdir -p {MSA_DIR} && chmod 0755 {MSA_DIR}", f"printf %s {shlex.quote(client)} >{MSA_DIR}/client.conf"]
    if host.name == control:
        life = ["--certificate-life-s", str(options["certificate_life"])]
        schedules = ["--scheduler", options["scheduler"]]
        lines.append(
            keep("msa-controllerd", [f"{options['bin']}/msa-controllerd", *common, "--listen-tls", f"0.0.0.0:{TLS_PORT}", *life, *schedules])
        )
    else:
        name = ["--name", host.name]
        lines.append(keep("msa-noded", [f"{options['bin']}/msa-noded", *common, *name, "--controller", server]))
        if host.nam:
            lines.append(keep("msa-namd", [f"{options['bin']}/msa-namd", *common, *name]))
    return "\n".join(lines)


def relay_script(options):
    """The gateway's relay; the host is up when it has the interface."""
    command = [options["bin"] + "/msa-gatewayd", "--tun", network.TUN]
    command += [word for name in ("delay", "rate") if options[name] for word in (f"--{name}", options[name])]
    return (
        f"setsid {shlex.join(command)} </dev/null >/var/log/msa-gatewayd.log 2>&1 &\n"
        "relay=$!\n"
        # Not /sys/class/net: /sys is the machine's, and shows its own network alone.
        f"carrier() {{ [[ $(ip -o link show {network.TUN}) == *LOWER_UP* ]]; }}\n"
        "for i in $(seq 1500); do carrier && break; kill -0 $relay 2>/dev/null || break; sleep 0.02; done\n"
        "kill -0 $relay 2>/dev/null || { cat /var/log/msa-gatewayd.log; exit 1; }\n"
        f"carrier || {{ echo 'msa-gatewayd runs, and has not opened {network.TUN} within 30 s'; exit 1; }}"
    )
