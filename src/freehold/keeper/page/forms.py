"""Reads HTML forms."""

from urllib.parse import parse_qs

from starlette.requests import Request


async def read_form(request: Request) -> dict[str, str]:
    """The last value of each field. The guard has limited the size."""
    body = (await request.body()).decode(errors="replace")
    return {name: values[-1] for name, values in parse_qs(body, max_num_fields=100).items()}
