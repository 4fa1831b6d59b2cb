"""Which hosts a virtual cluster has and how they are connected. Pure: a topology file in, a layout out.

Each module but those of kind gateway has a network, 10.77.N.0/24. A gateway has a leg in all of them and forwards; the host
ctl has one too, so that slurmctld needs no gateway to speak with a node, and does not forward.
"""

import dataclasses
import re
import tomllib

CONTROL = "ctl"
NETWORK = "10.77"
MAX_NODES = 200  # addresses .20 to .219 of a module's network
NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
SIZE = re.compile(r"(\d+)([KMGT]?)(?:i?B)?")


class Fault(Exception):
    """What the user did or has that does not work; its text says what to do."""


@dataclasses.dataclass
class Host:
    name: str
    module: str
    kind: str
    cores: int = 1
    gpus: int = 0
    memory_mib: int = 0  # 0: what the machine has
    nam: str = ""
    addresses: dict[str, str] = dataclasses.field(default_factory=dict)  # of each module in whose network it is

    @property
    def computes(self):
        return self.kind not in ("control", "nam", "gateway")


@dataclasses.dataclass
class Layout:
    networks: list[str]  # modules with a network of their own, in file order
    hosts: list[Host]
    text: str  # the topology file

    def host(self, name):
        for host in self.hosts:
            if host.name == name:
                return host
        raise Fault(f"no host '{name}' in this virtual cluster; it has {', '.join(h.name for h in self.hosts)}")

    def gateways(self):
        return [host for host in self.hosts if host.kind == "gateway"]

    def address(self, of, seen_from):
        """The address by which a host finds another: in a network that both are in, else the first."""
        for module, address in of.addresses.items():
            if module in seen_from.addresses:
                return address
        return next(iter(of.addresses.values()))


def expand(names):
    """'cn[0-1,4],fat' as the list of its names."""
    result = []
    for part in re.findall(r"[^,\[]+(?:\[[^\]]*\])?", names):
        match = re.fullmatch(r"([^\[]+)(?:\[([0-9,-]+)\])?", part.strip())
        if not match:
            raise Fault(f"node names '{names}': expected a list such as 'cn[0-3,8],fat0'")
        if match[2] is None:
            result.append(match[1])
            continue
        for item in match[2].split(","):
            first, _, last = item.partition("-")
            last = last or first
            if not first.isdigit() or not last.isdigit() or int(last) < int(first):
                raise Fault(f"node names '{names}': range '{item}' is not a number or FIRST-LAST")
            if int(last) - int(first) >= MAX_NODES:
                raise Fault(f"node names '{names}': range '{item}' has more than {MAX_NODES} names")
            result += [f"{match[1]}{i:0{len(first)}d}" for i in range(int(first), int(last) + 1)]
    return result


def mebibytes(text):
    match = SIZE.fullmatch(str(text))
    if not match:
        raise Fault(f"memory '{text}': expected a number with K, M, G or T, such as '8G'")
    return int(match[1]) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}[match[2]] // 2**20


def nodes_of(module):
    for entry in module.get("node", []):
        for name in expand(str(entry.get("names", ""))):
            if not NAME.fullmatch(name):
                raise Fault(f"module '{module['name']}': host name '{name}'; expected lower-case letters, digits and '-'")
            yield Host(
                name=name,
                module=module["name"],
                kind=module.get("kind", module["name"]),
                cores=int(entry.get("cores", 1)),
                gpus=int(entry.get("gpus", 0)),
                memory_mib=mebibytes(entry["memory"]) if "memory" in entry else 0,
                nam=str(entry.get("nam", "")),
            )


def add_addresses(hosts, networks):
    count = dict.fromkeys(networks, 0)
    legs = 0
    for host in hosts:
        if host.kind == "control":
            host.addresses = {module: f"{NETWORK}.{i}.2" for i, module in enumerate(networks)}
        elif host.kind == "gateway":
            legs += 1
            if legs > 8:
                raise Fault("more than 8 gateways; remove some from the topology file")
            host.addresses = {module: f"{NETWORK}.{i}.{2 + legs}" for i, module in enumerate(networks)}
        else:
            if count[host.module] >= MAX_NODES:
                raise Fault(f"module '{host.module}' has more than {MAX_NODES} nodes; a virtual cluster has at most that")
            host.addresses = {host.module: f"{NETWORK}.{networks.index(host.module)}.{20 + count[host.module]}"}
            count[host.module] += 1


def parse(text, source):
    """The layout of a topology file's text; `source` names the file in faults."""
    try:
        modules = tomllib.loads(text).get("module", [])
    except tomllib.TOMLDecodeError as error:
        raise Fault(f"{source}: {error}") from error
    if not modules:
        raise Fault(f"{source}: no [[module]]; see msa-topology(5)")
    hosts = [Host(name=CONTROL, module=CONTROL, kind="control")]
    try:
        for module in modules:
            if "name" not in module:
                raise Fault("a [[module]] without name")
            if not NAME.fullmatch(module["name"]) or module["name"] == CONTROL:
                raise Fault(f"module name '{module['name']}'; expected lower-case letters, digits and '-', not '{CONTROL}'")
            hosts += nodes_of(module)
        networks = [m["name"] for m in modules if m.get("kind", m["name"]) != "gateway"]
        names = [host.name for host in hosts]
        for name in names:
            if names.count(name) > 1:
                raise Fault(f"host name '{name}' is there twice" + (", the control host has it" if name == CONTROL else ""))
        if not any(host.computes for host in hosts):
            raise Fault("no node that computes: all are of kind nam or gateway")
        add_addresses(hosts, networks)
    except Fault as fault:
        raise Fault(f"{source}: {fault}") from fault
    return Layout(networks=networks, hosts=hosts, text=text)
