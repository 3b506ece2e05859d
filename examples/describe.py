"""Ask a vision-language model about each segment of a video: python describe.py talk.mp4.

`ask` is any callable: a local model, or a client of a service. It gets a JPEG and a question.
"""

import sys
from collections.abc import Callable, Iterator

import ongebd
from ongebd.detector.trace import jpeg

Ask = Callable[[bytes, str], str]


def described(video: str, ask: Ask, pictures: int = 8) -> Iterator[tuple[float, float, str]]:
    """Start, end and answer of each segment; at most `pictures` are sent."""
    for segment, picture in ongebd.detect(video, min_length=1).keyframes(max=pictures):
        question = f"From {segment.start:.1f} to {segment.end:.1f} s of a video. What happens? One sentence."
        yield segment.start, segment.end, ask(jpeg(picture), question)


if __name__ == "__main__":

    def nobody(image: bytes, question: str) -> str:
        """Put your model here."""
        return f"({len(image)} bytes) {question}"

    for start, end, answer in described(sys.argv[1], nobody):
        print(f"{start:7.2f} {end:7.2f}  {answer}")
