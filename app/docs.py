"""Swagger UI at /docs from assets that the service brings along: nothing is loaded from anywhere else."""

from collections.abc import Awaitable, Callable
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI
from starlette.responses import FileResponse, HTMLResponse, Response

# All URLs are relative to the page, so that it works behind any prefix, told to the service or not.
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="docs/favicon-32x32.png?v={version}">
<link rel="stylesheet" href="docs/swagger-ui.css?v={version}">
</head>
<body>
<div id="swagger-ui"></div>
<noscript>This page needs JavaScript. The description of the API is at <a href="{openapi}">{openapi}</a>.</noscript>
<script src="docs/swagger-ui-bundle.js?v={version}"></script>
<script src="docs/start.js" data-openapi="{openapi}"></script>
</body>
</html>
"""

# In a file of its own because the policy below allows no inline script.
_START = """window.ui = SwaggerUIBundle({
  url: document.currentScript.dataset.openapi,
  dom_id: "#swagger-ui",
  layout: "BaseLayout",
  deepLinking: true,
  displayRequestDuration: true,
  filter: true,
  persistAuthorization: true,
  tryItOutEnabled: true,
  validatorUrl: null
});
"""

# The stylesheet holds its icons as data: URLs.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_ASSETS = ("swagger-ui-bundle.js", "swagger-ui.css", "favicon-32x32.png")
_PACKAGE = "fastapi-swagger"


def install(app: FastAPI) -> None:
    """Serve /docs. The app is made with `docs_url=None, redoc_url=None`: FastAPI's own pages load from a CDN."""
    resources = Path(str(files("fastapi_swagger"))) / "resources"
    page = _PAGE.format(
        title=escape(app.title),
        openapi=escape((app.openapi_url or "").lstrip("/")),
        version=version(_PACKAGE),
    )

    @app.get("/docs", include_in_schema=False)
    async def show_docs() -> HTMLResponse:
        return HTMLResponse(page, headers={"Content-Security-Policy": _POLICY, "Referrer-Policy": "no-referrer"})

    @app.get("/docs/start.js", include_in_schema=False)
    async def start() -> Response:
        return Response(_START, media_type="text/javascript", headers={"Cache-Control": "no-cache"})

    for name in _ASSETS:
        app.get(f"/docs/{name}", include_in_schema=False)(_serving(resources / name))


def _serving(file: Path) -> Callable[[], Awaitable[FileResponse]]:
    async def serve() -> FileResponse:
        return FileResponse(file, headers={"Cache-Control": "public, max-age=31536000, immutable"})

    return serve
