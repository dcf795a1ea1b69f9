"""The server: on the loopback address only, until Ctrl-C."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable

from ..errors import InvalidArgument, MissingDependency
from ..shortage import is_shortage

__all__ = ["serve"]


def serve(port: int = 0, *, ready: Callable[[str], None]) -> None:
    """Serve the page until Ctrl-C. port: 0 takes any that is free. ready: called with the address, which works once."""
    try:
        import uvicorn

        from .access import HOST, Access
        from .app import make_app
    except ImportError as error:
        if is_shortage(error):
            raise
        missing = error.name or "starlette"
    else:
        with _listening(HOST, port) as listening:
            access = Access(listening.getsockname()[1])
            config = uvicorn.Config(
                make_app(access),
                access_log=False,
                log_level="critical",  # its errors would show what is going on inside
                lifespan="off",
                server_header=False,
                proxy_headers=False,
                http="h11",  # it limits the length of a header; what else is installed may not
                ws="none",
            )
            ready(access.address)
            with contextlib.suppress(KeyboardInterrupt):  # once it has let a release that runs come to its end
                uvicorn.Server(config).run(sockets=[listening])
        return
    raise MissingDependency(
        f"crowdgram explore: {missing} is not installed. Install it with: pip install 'crowdgram[explore]'",
        name=missing,
    )


def _listening(host: str, port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.bind((host, port))
        return made
    except (OSError, OverflowError) as error:
        made.close()
        reason = getattr(error, "strerror", None) or str(error)
    raise InvalidArgument(f"--port {port}: cannot be listened on ({reason}). Give another, or none.", argument="--port")
