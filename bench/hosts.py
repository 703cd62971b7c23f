"""hosts.py - two hosts on this one: network namespaces with two links between them, which can be cut (root)

The first link leads to the scheduler and the nodes' names, the second carries the data plane: cut alone, it leaves two hosts
that both still reach the scheduler."""
import os
import subprocess

def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)

class Namespace:
    def __init__(self, name, number):
        self.name = name
        self.address = f"10.77.0.{number}"
        self.data_address = f"10.77.1.{number}"

    def on(self, argv):
        return ["nsenter", f"--net=/run/netns/{self.name}", *argv]

class TwoHosts:
    links = ("all", "data")

    def __init__(self):
        """OSError, CalledProcessError: not here."""
        if os.geteuid() != 0:
            raise PermissionError("network namespaces need root")
        self.hosts = [Namespace(f"msc{x}{os.getpid()}", i) for i, x in enumerate("ab", 1)]
        self.is_cut = {"control": False, "data": False}
        try:
            self._make()
        except BaseException:
            self.remove()
            raise

    def _make(self):
        for host in self.hosts:
            ip("netns", "add", host.name)
            ip("-n", host.name, "link", "set", "lo", "up")
        subprocess.run(self.hosts[0].on(["true"]), check=True, capture_output=True)
        a, b = self.hosts
        for link in self.is_cut:
            ip("link", "add", link, "netns", a.name, "type", "veth", "peer", "name", link, "netns", b.name)
        for host in self.hosts:
            ip("-n", host.name, "addr", "add", f"{host.address}/24", "dev", "control")
            ip("-n", host.name, "addr", "add", f"{host.data_address}/24", "dev", "data")
            for link in self.is_cut:
                ip("-n", host.name, "link", "set", link, "up")

    def _set(self, link, word):
        ip("-n", self.hosts[1].name, "link", "set", link, word)
        self.is_cut[link] = word == "down"

    def cut(self, which):
        """which: "all" or "data"."""
        for link in self.is_cut if which == "all" else ("data",):
            self._set(link, "down")

    def join(self):
        for link, is_cut in list(self.is_cut.items()):
            if is_cut:
                self._set(link, "up")

    def remove(self):
        for host in self.hosts:
            subprocess.run(["ip", "netns", "del", host.name], check=False, capture_output=True)
