"""The page's routes. What people typed and what the library says travels as JSON, and is shown as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import metadata, resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from ..errors import CrowdgramError
from ..escaping import printable
from ..shortage import TOO_LITTLE_MEMORY, is_shortage
from .access import Access, Application, Guard
from .work import Busy, Made, Repeated, Work

__all__ = ["make_app"]

_ASSETS = {
    "explore.css": ("crowdgram.explore", "assets", "text/css"),
    "explore.js": ("crowdgram.explore", "assets", "text/javascript"),
    "uPlot.min.css": ("crowdgram.present.pages", "vendor", "text/css"),
    "uPlot.iife.min.js": ("crowdgram.present.pages", "vendor", "text/javascript"),
}
_SANDBOX = "sandbox allow-scripts allow-downloads; frame-ancestors 'self'"
"""A report runs its own script as a page of no origin: it can ask this server for nothing."""


def make_app(access: Access, work: Work | None = None) -> Application:
    """The page behind its guard."""
    state = Work() if work is None else work

    async def index(request: Request) -> Response:
        return HTMLResponse(_page(request.scope.get("crowdgram.key", "")))

    async def asset(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _ASSETS:
            return JSONResponse({"error": "There is no such file."}, 404)
        package, folder, kind = _ASSETS[name]
        return Response(resources.files(package).joinpath(folder, name).read_bytes(), media_type=kind)

    def made(show: Callable[[Made], Response]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            found = state.find(request.path_params["name"])
            return JSONResponse({"error": "There is no such release."}, 404) if found is None else show(found)

        return answer

    asked = {
        "estimate": state.estimate,
        "columns": state.columns,
        "copies": state.copies,
        "check": state.check,
        "release": state.release,
        "made": state.list_made,
    }
    routes = [
        Route("/", index),
        Route("/assets/{name}", asset),
        Route("/releases/{name}", made(_shown)),
        Route("/releases/{name}/report.html", made(_report)),
        Route("/releases/{name}/release.json", made(_document)),
        *(Route(f"/{name}", _answer(call), methods=["POST"]) for name, call in asked.items()),
    ]
    return Guard(Starlette(routes=routes), access)


def _answer(call: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Callable[[Request], Any]:
    """A route that hands the form on, and the library's own sentence back if it is refused."""

    async def answer(request: Request) -> Response:
        try:
            form = await request.json()
        except (ValueError, RecursionError):
            form = None
        if not isinstance(form, dict):
            return JSONResponse({"error": "JSON is needed."}, 400)
        status, said = await run_in_threadpool(_try, call, form)
        return JSONResponse(said, status)

    return answer


def _try(call: Callable[[Mapping[str, Any]], dict[str, Any]], form: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    try:
        return 200, call(form)
    except Busy:
        return 409, {"error": "A release is being made already. Wait for it."}
    except Repeated as error:
        return 409, {"error": str(error), "again": error.made}
    except CrowdgramError as error:
        return 422, {"error": printable(str(error)), "field": _field(error, form)}
    except Exception as error:  # noqa: BLE001 (its message may quote rows)
        if is_shortage(error):
            return 500, {"error": TOO_LITTLE_MEMORY}
        kind = type(error).__name__
    return 500, {"error": f"unexpected {kind}. Details are withheld because they could reveal rows. Please report it."}


def _field(error: CrowdgramError, form: Mapping[str, Any]) -> str | None:
    """The field of the form that an error is about, if it says so: by its argument, by a column that was given, or by
    the argument that its sentence begins with.
    """
    argument, column = getattr(error, "argument", None), getattr(error, "column", None)
    given = [name for name in ("user", "item", "by", "period_column") if column and form.get(name) == column]
    begins = re.match(r"(table|domain|groups|ledger|where|period|period_column)\b", str(error))
    return argument if isinstance(argument, str) else next(iter(given), begins and begins[1])


def _shown(one: Made) -> Response:
    return HTMLResponse(one.report, headers={"Content-Security-Policy": _SANDBOX})


def _report(one: Made) -> Response:
    return _download(one.report, "text/html", f"report-{one.place}.html")


def _document(one: Made) -> Response:
    return _download(one.document, "application/json", f"release-{one.place}.json")


def _download(content: str, kind: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Content-Security-Policy": _SANDBOX}
    return Response(content, media_type=kind, headers=headers)


def _page(key: str) -> str:
    return _template().render(version=metadata.version("crowdgram"), key=key)


@cache
def _template() -> Template:
    environment = Environment(loader=PackageLoader("crowdgram.explore"), autoescape=True, undefined=StrictUndefined)
    return environment.get_template("explore.html.j2")
