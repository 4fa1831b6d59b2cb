#!/usr/bin/env python3
"""A server that appends the lines it gets to a file, for the examples of I/O servers.

line_server.py serve ADDRESS_FILE DATA_FILE   serves until a 'shutdown' comes; writes "HOST PORT" into ADDRESS_FILE
line_server.py send ADDRESS_FILE TEXT         sends one line, and waits until it is in the file
line_server.py shutdown ADDRESS_FILE
"""

import os
import socket
import sys
import time


def serve(address_file, data_file):
    with socket.create_server(("", 0)) as server, open(data_file, "a", encoding="utf-8") as data:
        # Renamed into place: a client never sees half an address.
        with open(address_file + ".part", "w", encoding="utf-8") as out:
            out.write(f"{socket.gethostname()} {server.getsockname()[1]}\n")
        os.rename(address_file + ".part", address_file)
        while True:
            connection, _ = server.accept()
            with connection, connection.makefile("rw", encoding="utf-8") as stream:
                line = stream.readline()
                if line == "shutdown\n":
                    return
                data.write(line)
                data.flush()
                stream.write("ok\n")
                stream.flush()


def ask(address_file, line, limit=60):
    end = time.monotonic() + limit
    while not os.path.exists(address_file):
        if time.monotonic() > end:
            sys.exit(f"line_server: no server within {limit} s: {address_file} is not there")
        time.sleep(0.05)
    with open(address_file, encoding="utf-8") as file:
        host, port = file.read().split()
    with socket.create_connection((host, int(port)), timeout=limit) as connection, connection.makefile("rw", encoding="utf-8") as stream:
        stream.write(line + "\n")
        stream.flush()
        return stream.readline()


def main():
    words = sys.argv[1:]
    if words[:1] == ["serve"] and len(words) == 3:
        serve(words[1], words[2])
    elif words[:1] == ["send"] and len(words) == 3:
        if ask(words[1], f"{words[2]} {socket.gethostname()} {os.environ.get('SLURM_PROCID', '')}") != "ok\n":
            sys.exit("line_server: the server did not take the line")
    elif words[:1] == ["shutdown"] and len(words) == 2:
        ask(words[1], "shutdown")
    else:
        sys.exit(__doc__)


main()
