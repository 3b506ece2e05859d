"""A web service that tells boundaries while it reads: uvicorn service:app. Needs the extra `live`.

curl --data-binary @talk.mp4 http://127.0.0.1:8000/boundaries
"""

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

import ongebd

MOST = 500_000_000  # bytes of a video


async def boundaries(request: Request) -> JSONResponse | StreamingResponse:
    """Take a video; answer with a line of JSON for each boundary, as it is found."""
    folder = tempfile.TemporaryDirectory()
    video = Path(folder.name) / "video"
    with video.open("wb") as file:
        async for piece in request.stream():
            if file.tell() + len(piece) > MOST:
                folder.cleanup()
                return JSONResponse({"error": "the video is too large"}, 413)
            file.write(piece)
    model = await asyncio.to_thread(ongebd.load)  # loaded once, shared by all requests

    async def lines() -> AsyncIterator[str]:
        with folder:
            try:
                async for one in ongebd.stream_async(video, model):
                    yield json.dumps({"time": one.time, "onset": one.onset, "score": one.score}) + "\n"
            except ongebd.OngebdError as problem:  # one line for people
                yield json.dumps({"error": str(problem)}) + "\n"

    return StreamingResponse(lines(), media_type="application/x-ndjson")


app = Starlette(routes=[Route("/boundaries", boundaries, methods=["POST"])])
