"""One job: videos out to a pool of workers, answers back in the order of the videos."""

from __future__ import annotations

import pickle
from collections.abc import Generator, Sequence
from typing import Any

from ongebd.cluster.attempts import Attempts
from ongebd.cluster.connection import Cluster
from ongebd.cluster.probing import first_line
from ongebd.cluster.tasks import Task, Video
from ongebd.cluster.worker import Answer, Site, Unfit, Worker
from ongebd.errors import ClusterError


class RemoteAttempts:
    """`Attempts` that live in an actor. Ending is told and not waited for."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def begin(self, number: int) -> int:
        """Work on a video begins."""
        return int(_get(self._actor.begin.remote(number)))

    def end(self, number: int) -> None:
        """Work on it came to an end."""
        self._actor.end.remote(number)

    def unfinished(self, number: int) -> int:
        """How often it began without an end."""
        return int(_get(self._actor.unfinished.remote(number)))


def answers(
    cluster: Cluster | None, task: Task, videos: Sequence[Video], jobs: int, *, gpu: bool
) -> Generator[tuple[Video, Answer], None, None]:
    """Work on all videos, each in a task of its own, and give the answers in the order of the videos.

    A worker that dies is begun again by Ray, and so is the video that it was at. One that a worker died over
    several times gets a `Failure` as its answer. Close the generator, or read it to the end.

    Args:
        cluster: Where; None will do where there is no video.
        task: What to do with each.
        videos: Numbered from 0 in this order.
        jobs: Videos at once in one worker.
        gpu: Whether each worker has a GPU of its own.

    Raises:
        ClusterError: A machine cannot do the work, or the cluster was lost; or there is none.
    """
    if not videos:
        return
    if cluster is None:
        raise ClusterError(f"no cluster was given, and {len(videos)} videos are to be done")
    import ray.data
    from ray.exceptions import RayError

    workers = min(cluster.places(gpu=gpu), len(videos))
    counter = ray.remote(num_cpus=0)(Attempts).options(scheduling_strategy=cluster.here()).remote()
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = cluster.verbose
    # All workers are asked for at once, and one is enough to go on: where a machine goes away for good, those
    # that are left do its part.
    pool = ray.data.ActorPoolStrategy(
        min_size=1,
        max_size=workers,
        initial_size=workers,
        max_concurrent_calls_per_actor=jobs,
        enable_true_multi_threading=jobs > 1,
    )
    rows = [{"video": pickle.dumps(video)} for video in videos]
    # One block, and so one task, for each video: what is lost with a worker is that video alone.
    results = ray.data.from_items(rows, override_num_blocks=len(rows)).map(
        Worker,
        compute=pool,
        fn_constructor_args=(task, Site.here([video.source for video in videos]), RemoteAttempts(counter)),
        **({"num_gpus": 1} if gpu else {"num_cpus": 1}),
    )
    try:
        yield from _in_order(videos, results)
    except RayError as problem:
        raise ClusterError(f"Ray gave up: {first_line(problem)}; give the command again") from problem
    finally:
        ray.kill(counter)


def _in_order(videos: Sequence[Video], results: Any) -> Generator[tuple[Video, Answer], None, None]:
    """Each video with its answer.

    Raises:
        ClusterError: A machine is unfit, or an answer is missing or of another video.
    """
    expected = iter(videos)
    for batch in results.iter_batches(batch_size=None, prefetch_batches=0, batch_format="pyarrow"):
        for cell in batch.column("answer"):
            answer: Answer | Unfit = pickle.loads(cell.as_py())
            if isinstance(answer, Unfit):
                raise ClusterError(answer.reason)
            video = next(expected, None)
            if video is None or video.number != answer.number:
                raise ClusterError(f"an answer came twice or out of order (number {answer.number})")
            yield video, answer
    if (video := next(expected, None)) is not None:
        raise ClusterError(f"no answer came for {video.id}; give the command again")


def _get(reference: Any) -> Any:
    import ray

    return ray.get(reference)
