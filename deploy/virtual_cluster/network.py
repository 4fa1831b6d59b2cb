"""Bridges, legs and routes. Pure: a layout in, scripts out, for the network namespaces of the cluster and of its hosts."""

from .layout import NETWORK

MTU = 9000
TUN = "relay0"


def bridge(index):
    return f"br{index}"


def cable(layout, host):
    """The ends of a host's legs in the cluster's network namespace."""
    number = layout.hosts.index(host)
    return [(layout.networks.index(module), f"h{number}n{layout.networks.index(module)}") for module in host.addresses]


def bridges_script(layout):
    lines = ["ip link set lo up"]
    for index in range(len(layout.networks)):
        lines.append(f"ip link add {bridge(index)} mtu {MTU} type bridge && ip link set {bridge(index)} up")
    return "\n".join(lines)


def cables_script(layout, host, pid):
    """`pid`: of the host's holder."""
    lines = []
    for leg, (index, end) in enumerate(cable(layout, host)):
        lines.append(
            f"ip link add {end} mtu {MTU} type veth peer name eth{leg} mtu {MTU} netns {pid}\n"
            f"ip link set {end} master {bridge(index)} up"
        )
    return "\n".join(lines)


def host_script(layout, host):
    lines = ["ip link set lo up"]
    for leg, address in enumerate(host.addresses.values()):
        lines.append(f"ip address add {address}/24 dev eth{leg} && ip link set eth{leg} up")
    if host.kind == "gateway":
        lines.append(gateway_script(host))
    elif host.kind != "control" and layout.gateways():
        gateway = layout.gateways()[0].addresses[host.module]
        lines.append(f"ip route add {NETWORK}.0.0/16 via {gateway}")
    return "\n".join(lines)


def gateway_script(host):
    """What comes in by a leg and goes elsewhere takes the way through the relay's interface: no relay, no way."""
    lines = [
        f"ip tuntap add dev {TUN} mode tun vnet_hdr && ip link set {TUN} mtu {MTU} up",
        f"ip route add default dev {TUN} table 100",
        "echo 1 >/proc/sys/net/ipv4/ip_forward",
        "for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >$f; done",
        "for f in /proc/sys/net/ipv4/conf/*/send_redirects; do echo 0 >$f; done",
    ]
    lines += [f"ip rule add iif eth{leg} lookup 100" for leg in range(len(host.addresses))]
    return "\n".join(lines)
