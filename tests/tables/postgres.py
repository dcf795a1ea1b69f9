"""A PostgreSQL server for the tests: started in a folder of its own, on a socket and a port of this machine."""

from __future__ import annotations

import contextlib
import glob
import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile


def binaries():
    """The folder of initdb and postgres, or None."""
    found = shutil.which("initdb")
    places = [os.path.dirname(os.path.realpath(found))] if found else []
    places += sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
    return next((place for place in places if os.path.exists(os.path.join(place, "postgres"))), None)


def missing():
    """Why there can be no server here, in plain words; None if there can."""
    if importlib.util.find_spec("psycopg") is None:
        return "psycopg is not installed: pip install 'crowdgram[postgres]'"
    if binaries() is None:
        return "PostgreSQL's initdb and postgres are not installed (for example Debian's postgresql)"
    if os.geteuid() == 0 and other_user() is None:
        return "PostgreSQL does not run as root, and there is no user 'postgres' or 'nobody' to run it as"
    return None


def other_user():
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    return None


@contextlib.contextmanager
def server():
    """Yields the address of an empty database, with a user and a password."""
    import psycopg

    who = other_user() if os.geteuid() == 0 else None
    own = {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []} if who else {}
    folder = tempfile.mkdtemp(prefix="crowdgram-postgres-")
    try:
        if who:
            os.chown(folder, who.pw_uid, who.pw_gid)
        secret = os.path.join(folder, "secret")
        with open(secret, "w") as file:
            file.write("tiger-0815")
        os.chmod(secret, 0o644)
        data, bin_ = os.path.join(folder, "data"), binaries()
        options = ["--username=keeper", "--auth=scram-sha-256", "--no-sync", "--encoding=UTF8", "--locale=C"]
        command = [os.path.join(bin_, "initdb"), "-D", data, f"--pwfile={secret}", *options]
        subprocess.run(command, check=True, capture_output=True, cwd=folder, **own)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [os.path.join(bin_, "postgres"), "-D", data, "-p", str(port), "-k", folder, "-h", "127.0.0.1", "-F"]
        with open(os.path.join(folder, "log"), "w") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, **own)
        address = f"postgresql://keeper:tiger-0815@127.0.0.1:{port}/postgres"
        try:
            for _ in range(200):
                with contextlib.suppress(psycopg.OperationalError), psycopg.connect(address):
                    break
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.1)
                    raise RuntimeError("PostgreSQL stopped as soon as it was started")
            yield address
        finally:
            process.terminate()
            process.wait(30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def database(address, name):
    """The address of a new database of the server."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"create database {name}")
    return f"{address.rpartition('/')[0]}/{name}"
