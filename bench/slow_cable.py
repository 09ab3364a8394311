"""Two hosts on this machine, as network namespaces, with a slow cable between them that is a program:
for systems whose kernel knows rates but no delays. Needs root, ip (iproute2) and /dev/net/tun.
"""

import collections
import ctypes
import fcntl
import os
import select
import struct
import subprocess
import threading
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
MTU = 16000  # large packets, so that the program is no part of what is measured
QUEUE_SECONDS = 0.25  # what a router holds before it drops


class Cable:
    """Packets in one direction leave one after the other at the rate, and arrive after the delay."""

    def __init__(self, source, sink, bits_per_second, delay):
        self.source, self.sink, self.rate, self.delay = source, sink, bits_per_second / 8, delay
        self.carried = 0  # bytes so far
        threading.Thread(target=self.carry, daemon=True).start()

    def carry(self):
        """Ends with the namespaces, which take the ends of the cable with them."""
        try:
            self.carry_on()
        except OSError:
            pass

    def carry_on(self):
        free, under_way = 0.0, collections.deque()
        while True:
            patience = None
            if under_way:
                patience = max(0.0, under_way[0][0] - time.monotonic())
            ready, _, _ = select.select([self.source], [], [], patience)
            now = time.monotonic()
            if ready:
                packet = os.read(self.source, 65536)
                if free - now < QUEUE_SECONDS:
                    free = max(free, now) + len(packet) / self.rate
                    under_way.append((free + self.delay, packet))
                    self.carried += len(packet)
            while under_way and under_way[0][0] <= now:
                os.write(self.sink, under_way.popleft()[1])


class TwoHosts:
    """`on(host, words)` are the words of a command on host 0 or 1."""

    def __init__(self, bits_per_second, delay):
        """OSError or CalledProcessError where the system refuses; nothing is left of it."""
        self.names = [f"troupe-cable-{os.getpid()}-{host}" for host in (0, 1)]
        self.ends = []
        try:
            for host, name in enumerate(self.names):
                self.make_host(host, name)
        except BaseException:
            self.close()
            raise
        self.cables = [Cable(self.ends[i], self.ends[1 - i], bits_per_second, delay)
                       for i in (0, 1)]

    def carried(self):
        """Bytes in both directions."""
        return sum(cable.carried for cable in self.cables)

    def make_host(self, host, name):
        subprocess.run(["ip", "netns", "add", name], check=True)
        self.ends.append(self.open_tun(name))
        for words in (["link", "set", "lo", "up"],
                      ["address", "add", f"{self.address(host)}/24", "dev", "cable"],
                      ["link", "set", "cable", "up", "mtu", str(MTU)]):
            subprocess.run(["ip", "-n", name, *words], check=True)

    def open_windows(self):
        """From now on a new connection may send as much at once as is under way on the line."""
        for host, name in enumerate(self.names):
            subprocess.run(["ip", "netns", "exec", name, "sysctl", "--quiet", "--write",
                            "net.ipv4.tcp_rmem=4096 8388608 33554432",
                            "net.ipv4.tcp_wmem=4096 4194304 33554432"], check=True)
            subprocess.run(["ip", "-n", name, "route", "replace", f"{self.address(1 - host)}/32",
                            "dev", "cable", "initcwnd", "80", "initrwnd", "1000"], check=True)

    @staticmethod
    def open_tun(name):
        """The end of the cable in that namespace, which a thread of its own enters."""
        opened, refused = [], []

        def enter_and_open():
            space = os.open(f"/var/run/netns/{name}", os.O_RDONLY)
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.setns(space, CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            end = os.open("/dev/net/tun", os.O_RDWR)
            fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH", b"cable", IFF_TUN | IFF_NO_PI))
            opened.append(end)
            os.close(space)

        def attempt():
            try:
                enter_and_open()
            except OSError as error:
                refused.append(error)

        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()
        if refused:
            raise refused[0]
        return opened[0]

    @staticmethod
    def address(host):
        return f"10.78.0.{host + 1}"

    def on(self, host, words):
        # Processes of one host would find each other's memory through /proc.
        apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        return ["ip", "netns", "exec", self.names[host], *apart, *words]

    def close(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], check=False, stderr=subprocess.DEVNULL)
        self.names = []
