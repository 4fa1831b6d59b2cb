"""The parts of deploy/vcluster: a virtual cluster of namespaced hosts on one machine."""
